//! Limits: which pass and are waited for, which do not, and that no key shows in what is said of them.

use super::*;

const GOOD: &str = "{\"rule\":\"r\"}";

fn good() -> Script {
    says(200, document(&json!({"content": GOOD})))
}

/// As OpenAI words it, with its address for those who want more.
fn per_minute() -> Value {
    json!({"error": {
        "message": "Rate limit reached for m-1 in organization org-x on requests per min (RPM): Limit 3, Used 3, Requested 1. \
            Please try again in 20s. Visit https://platform.openai.com/account/billing to add a payment method.",
        "type": "requests", "param": null, "code": "rate_limit_exceeded"
    }})
}

/// As Gemini words it.
fn quota(id: &str) -> Value {
    json!({"error": {
        "code": 429,
        "message": "You exceeded your current quota, please check your plan and billing details.",
        "status": "RESOURCE_EXHAUSTED",
        "details": [
            {"@type": "type.googleapis.com/google.rpc.QuotaFailure", "violations": [{
                "quotaMetric": "generativelanguage.googleapis.com/generate_content_free_tier_requests", "quotaId": id
            }]},
            {"@type": "type.googleapis.com/google.rpc.RetryInfo", "retryDelay": "26.5s"}
        ]
    }})
}

#[tokio::test(start_paused = true)]
async fn a_limit_per_minute_without_a_header_is_outlasted() {
    let overloaded = json!({"type": "error", "error": {"type": "overloaded_error", "message": "Overloaded"}});
    let stopped = json!({"error": {"message": "slow down", "type": "rate_limit_error", "code": null}});
    for (script, reason) in [
        (says(429, per_minute()), "HTTP 429: Rate limit reached"),
        (says(529, overloaded), "HTTP 529: Overloaded"),
        (streams(&[delta("{"), event(&stopped)]), "HTTP 429: slow down"),
    ] {
        let bench = Bench::new([script.clone(), script.clone(), script.clone(), script, good()]);
        let started = Instant::now();
        assert_eq!(value(&bench.ask(&structured()).await.unwrap()), json!({"rule": "r"}));
        assert!(started.elapsed() > Duration::from_secs(61), "{:?}", started.elapsed());
        let notices = bench.notices.lock().unwrap();
        assert_eq!(notices.len(), 4, "each wait is told");
        assert!(notices[0].reason.starts_with(reason), "{}", notices[0].reason);
        assert!(notices[0].wait < Duration::from_secs(3));
    }
}

#[tokio::test(start_paused = true)]
async fn gemini_s_limit_per_minute_is_waited_for_as_long_as_it_says() {
    let failure = says(429, quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier"));
    // Through its compatible interface the same comes in a list.
    let list = says(
        429,
        json!([quota("GenerateRequestsPerMinutePerProjectPerModel-FreeTier")]),
    );
    for script in [failure, list] {
        let bench = Bench::new([script, good()]);
        bench.ask(&structured()).await.unwrap();
        assert_eq!(bench.notices.lock().unwrap()[0].wait, Duration::from_secs_f64(26.5));
    }
}

#[tokio::test(start_paused = true)]
async fn what_does_not_pass_in_minutes_is_said_at_once() {
    let unpaid = |status: u16, kind: &str, message: &str| {
        says(
            status,
            json!({"error": {"message": message, "type": kind, "code": "some_code"}}),
        )
    };
    for (script, remedy) in [
        (
            says(429, quota("GenerateRequestsPerDayPerProjectPerModel-FreeTier")),
            "today's quota is used up",
        ),
        (
            unpaid(429, "insufficient_quota", "You exceeded your current quota"),
            "no quota left",
        ),
        (
            unpaid(
                400,
                "invalid_request_error",
                "Your credit balance is too low to access the API",
            ),
            "no quota left",
        ),
        (unpaid(402, "x", "Insufficient Balance"), "no credit left"),
        (
            unpaid(
                429,
                "tokens",
                "Request too large for m-1 on tokens per min (TPM): Limit 10, Requested 20",
            ),
            "too large for this model",
        ),
    ] {
        let bench = Bench::new([script]);
        let error = bench.ask(&structured()).await.unwrap_err();
        assert!(matches!(error, ModelError::Rejected { .. }), "{error:?}");
        assert!(error.to_string().contains(remedy), "{error}");
        assert!(bench.notices.lock().unwrap().is_empty());
    }
}

#[tokio::test(start_paused = true)]
async fn a_wait_of_minutes_is_kept_within_its_bound() {
    let asks = |seconds| Script {
        retry_after: Some(seconds),
        ..says(429, "slow down")
    };
    let bench = Bench::new([asks(120.0), asks(120.0), good()]);
    assert!(bench.ask(&structured()).await.unwrap().elapsed_ms >= Millis::from_seconds(240));
    let bench = Bench::new([asks(120.0), asks(120.0), asks(120.0)]);
    let error = bench.ask(&structured()).await.unwrap_err();
    assert!(error.to_string().contains("try again in 120 s"), "{error}");
}

#[tokio::test(start_paused = true)]
async fn a_key_across_the_cut_is_not_half_shown() {
    // Each answer is asked of every place at which the cut can fall into the key.
    for before in 90..310 {
        let filler = "x ".repeat(before / 2) + if before % 2 == 0 { "" } else { "x" };
        let words = format!("{filler}{KEY} is wrong");
        let garbage = Piece::Bytes(format!("data: {words}\n\n"));
        for script in [
            says(401, json!({"error": {"message": words}})),
            says(200, format!("<html>{words}")),
            streams(&[delta("x"), garbage]),
            says(
                200,
                json!({"choices": [{"message": {"content": "", "refusal": words}}]}),
            ),
        ] {
            let error = Bench::new([script]).ask(&structured()).await.unwrap_err().to_string();
            for length in 6..KEY.len() {
                assert!(!error.contains(&KEY[..length]), "{before}: {error}");
            }
        }
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_is_complete_is_taken_from_a_server_that_does_not_end() {
    let long = Duration::from_secs(10_000);
    let ping = || [Piece::Bytes(": ping\n\n".into()), Piece::Pause(Duration::from_secs(4))];
    let pinging: Vec<Piece> = std::iter::repeat_with(ping).take(100).flatten().collect();
    let usage = event(&json!({"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 3}}));
    let half = Piece::Bytes("data: {\"choices\": [], \"usa".into());
    let whole = || vec![delta(GOOD), stop()];
    for (after, counted) in [
        (vec![Piece::Pause(long)], None),
        (pinging, None),
        (
            vec![Piece::Pause(Duration::from_secs(3)), usage, Piece::Pause(long)],
            Some((9, 3)),
        ),
        (vec![half, Piece::Pause(long)], None),
    ] {
        let bench = Bench::new([streams(&[whole(), after].concat())]);
        let reply = bench.ask(&structured()).await.unwrap();
        assert_eq!(value(&reply), json!({"rule": "r"}));
        assert!(reply.elapsed_ms < Millis::from_seconds(20), "{:?}", reply.elapsed_ms);
        assert_eq!(reply.usage.estimated, counted.is_none());
        if let Some(counted) = counted {
            assert_eq!((reply.usage.input_tokens, reply.usage.output_tokens), counted);
        }
    }
    let document = Piece::Bytes(document(&json!({"content": GOOD})).to_string());
    let bench = Bench::new([streams(&[document, Piece::Pause(long)])]);
    assert_eq!(value(&bench.ask(&structured()).await.unwrap()), json!({"rule": "r"}));
}

#[tokio::test(start_paused = true)]
async fn an_empty_reason_to_finish_is_none() {
    let piece =
        |text: &str| event(&json!({"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": ""}]}));
    let pieces = [
        piece("{\"rule\""),
        Piece::Pause(Duration::from_secs(50)),
        piece(":\"r\"}"),
        stop(),
    ];
    let reply = Bench::new([streams(&pieces)]).ask(&structured()).await.unwrap();
    assert_eq!(value(&reply), json!({"rule": "r"}));
}
