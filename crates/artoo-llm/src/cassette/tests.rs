//! Tests of recording and replaying.

use artoo_protocol::model::{AnswerForm, ChatMessage, ModelContent, ModelToolCall, Tier, Usage};
use artoo_protocol::prompt::section;
use artoo_protocol::units::Millis;
use serde_json::json;

use super::*;

/// Answers with a tool call in the folder that it was told about, and counts.
struct Counting {
    folder: &'static str,
    asked: Mutex<u32>,
}

#[async_trait]
impl LanguageModel for Counting {
    async fn complete(&self, _: &ModelRequest) -> Result<ModelReply, ModelError> {
        let mut asked = self.asked.lock().unwrap();
        *asked += 1;
        if *asked == 3 {
            return Err(ModelError::Unusable {
                message: "empty choice for sk-abcdefghijklmnopqrst".into(),
            });
        }
        Ok(ModelReply {
            content: ModelContent::ToolCalls {
                text: Some(format!("answer {asked}")),
                calls: vec![ModelToolCall {
                    id: format!("call_{asked}"),
                    name: "read_file".into(),
                    arguments: json!({"path": format!("{}/a.txt", self.folder)}),
                }],
            },
            model: "m".into(),
            usage: Usage::default(),
            elapsed_ms: Millis(5),
        })
    }
}

fn request(now: &str, folder: &str, task: &str, question: &str) -> ModelRequest {
    let content = section("now", now) + &section("request", &format!("{question} in {folder} for {task} with {KEY}"));
    ModelRequest {
        tier: Tier::Brain,
        messages: vec![
            ChatMessage::System {
                content: "fixed".into(),
            },
            ChatMessage::User { content },
        ],
        form: AnswerForm::Tools { tools: vec![] },
        max_output_tokens: None,
    }
}

const KEY: &str = "my-very-own-key";

fn marks(folder: &str) -> Vec<Replacement> {
    vec![Replacement {
        text: folder.into(),
        mark: "<workspace>".into(),
    }]
}

async fn recorded(path: &Path) {
    let model = Arc::new(Counting {
        folder: "/tmp/one",
        asked: Mutex::new(0),
    });
    let recorder = Recorder::create(path, model, vec![Secret::new(KEY)], marks("/tmp/one")).unwrap();
    for question in ["look", "look", "fail"] {
        let _ = recorder
            .complete(&request("monday", "/tmp/one", "count_files_0a1b2c3d", question))
            .await;
    }
}

#[tokio::test]
async fn a_recording_is_replayed_in_order_in_another_run() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    recorded(&path).await;
    let player = Player::open(&path, marks("/var/two")).unwrap();
    let ask = |question| {
        let mut request = request("tuesday", "/var/two", "count_files_ffffffff", question);
        // The key is masked on the cassette, so a run without one asks the same.
        if let Some(ChatMessage::User { content }) = request.messages.last_mut() {
            *content = content.replace(KEY, "***");
        }
        request
    };
    assert_eq!(player.left(), 3);
    for number in 1..=2 {
        let reply = player.complete(&ask("look")).await.unwrap();
        let ModelContent::ToolCalls { text, calls } = reply.content else {
            panic!("no call")
        };
        assert_eq!(text, Some(format!("answer {number}")));
        assert_eq!(calls[0].arguments, json!({"path": "/var/two/a.txt"}));
    }
    let error = player.complete(&ask("look")).await.unwrap_err().to_string();
    assert!(
        error.contains("`message 2 (user): look in <workspace>")
            && error.contains("recorded was `message 2 (user): fail in"),
        "{error}"
    );
    assert!(matches!(
        player.complete(&ask("fail")).await,
        Err(ModelError::Unusable { .. })
    ));
    let error = player.complete(&ask("look")).await.unwrap_err().to_string();
    assert!(error.contains("every recorded exchange was used"), "{error}");
}

#[tokio::test]
async fn a_cassette_holds_no_secret_and_belongs_to_its_owner() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    recorded(&path).await;
    let text = std::fs::read_to_string(&path).unwrap();
    assert!(!text.contains(KEY) && !text.contains("sk-abc"), "{text}");
    assert_eq!(secrets_in(&path).unwrap(), []);
    #[cfg(unix)]
    {
        use std::os::unix::fs::PermissionsExt as _;
        assert_eq!(std::fs::metadata(&path).unwrap().permissions().mode() & 0o777, 0o600);
    }
    // Put in by hand, it is found.
    std::fs::write(&path, text.replace("answer 2", "sk-abcdefghijklmnopqrst")).unwrap();
    let finding = Finding {
        line: 3,
        shape: "provider key",
    };
    assert_eq!(secrets_in(&path).unwrap(), [finding]);
}

#[test]
fn what_is_no_cassette_is_refused_with_its_line() {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("x.jsonl");
    let open = |text: &str| {
        std::fs::write(&path, text).unwrap();
        Player::open(&path, vec![]).map(|_| ()).unwrap_err().to_string()
    };
    assert!(open("hello").contains("this is no cassette"));
    assert!(open("{\"format\":\"artoo-cassette\",\"version\":9}\n").contains("version 9"));
    assert!(open("{\"format\":\"artoo-cassette\",\"version\":1}\n{}\n").contains("line 2"));
    assert!(Player::open(&folder.path().join("absent"), vec![]).is_err());
}
