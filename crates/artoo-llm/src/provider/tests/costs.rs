//! What a call costs that fails, is repeated, or of which the server tells nothing.

use super::*;

/// Input, output, requests, and whether some of it is an estimate.
fn spent(error: &ModelError) -> (u64, u64, u32, bool) {
    let Some((model, usage)) = error.spent() else {
        return (0, 0, 0, false);
    };
    assert_eq!(model, "m-1-full");
    (usage.input_tokens, usage.output_tokens, usage.requests, usage.estimated)
}

/// An answer of 10 and 5 tokens.
fn answer(message: &Value, finish: &str) -> Script {
    let mut document = document(message);
    document["choices"][0]["finish_reason"] = json!(finish);
    says(200, document)
}

#[tokio::test(start_paused = true)]
async fn an_answer_of_no_use_has_its_price() {
    let cut = answer(&json!({"content": "{\"ru"}), "length");
    let filtered = answer(&json!({"content": ""}), "content_filter");
    let refused = answer(&json!({"content": "", "refusal": "no"}), "stop");
    let empty = answer(&json!({"content": ""}), "stop");
    for script in [cut, filtered, refused, empty] {
        let error = Bench::new([script.clone()]).ask(&structured()).await.unwrap_err();
        assert_eq!(spent(&error), (10, 5, 1, false), "{error}");
        assert!(!error.is_no_model());
        let error = Bench::new([script]).ask(&tools()).await.unwrap_err();
        assert_eq!(spent(&error), (10, 5, 1, false), "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn both_requests_of_a_re_ask_are_paid_whatever_the_second_brings() {
    let bad = answer(&json!({"content": "{\"role\": 1}"}), "stop");
    let cut = answer(&json!({"content": "{\"ru"}), "length");
    let gone = says(401, "wrong key");
    for (second, expected) in [
        (bad.clone(), (20, 10, 2, false)),
        (cut, (20, 10, 2, false)),
        (gone, (10, 5, 2, false)),
    ] {
        let error = Bench::new([bad.clone(), second]).ask(&structured()).await.unwrap_err();
        assert_eq!(spent(&error), expected, "{error}");
    }
}

#[tokio::test(start_paused = true)]
async fn what_failed_before_it_was_answered_costs_nothing() {
    for script in [says(401, "no"), says(200, "<html>"), streams(&[])] {
        let error = Bench::new([script]).ask(&structured()).await.unwrap_err();
        assert_eq!(error.spent(), None, "{error:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_answer_that_broke_off_counts_beside_the_one_that_came() {
    let usage = json!({"model": "m-1", "choices": [], "usage": {"prompt_tokens": 40, "completion_tokens": 1}});
    let broke = streams(&[event(&usage), delta("{\"rule\":\"xxxxxxxxxxx"), Piece::Break]);
    let good = answer(&json!({"content": "{\"rule\":\"r\"}"}), "stop");
    let reply = Bench::new([broke, good]).ask(&structured()).await.unwrap();
    // 20 bytes came of the first.
    let usage = Usage {
        input_tokens: 50,
        output_tokens: 10,
        cached_tokens: 4,
        requests: 1,
        estimated: true,
    };
    assert_eq!(reply.usage, usage);
}

#[tokio::test(start_paused = true)]
async fn a_server_that_counts_nothing_is_estimated() {
    for script in [
        streams(&[delta("hello you"), stop()]),
        says(
            200,
            json!({"choices": [{"message": {"content": "hello you"}, "finish_reason": "stop"}],
            "usage": {"prompt_tokens": 0, "completion_tokens": 0}}),
        ),
    ] {
        let bench = Bench::new([script]);
        let usage = bench.ask(&tools()).await.unwrap().usage;
        let sent = bench.asked()[0].1.to_string().len() as u64;
        assert_eq!(usage.input_tokens, sent.div_ceil(4));
        assert_eq!((usage.output_tokens, usage.requests, usage.estimated), (3, 1, true));
    }
    // Thinking is not kept, and counts.
    let thought = event(&json!({"choices": [{"delta": {"reasoning_content": "0123456789"}}]}));
    let bench = Bench::new([streams(&[thought, delta("hello you"), stop()])]);
    assert_eq!(bench.ask(&tools()).await.unwrap().usage.output_tokens, 5);
}
