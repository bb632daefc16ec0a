//! Lists of models as each provider sends them.

use super::*;

#[tokio::test(start_paused = true)]
async fn each_format_has_its_list() {
    let openai = json!({"object": "list", "data": [{"id": "z", "object": "model"}, {"id": "a"}, {"id": "a"}]});
    let anthropic = json!({"data": [{"type": "model", "id": "c-2", "display_name": "C 2"}], "has_more": false});
    let gemini = json!({"models": [
        {"name": "models/g-1", "supportedGenerationMethods": ["generateContent", "countTokens"]},
        {"name": "models/embed", "supportedGenerationMethods": ["embedContent"]}
    ]});
    for (wire, list, place, expected) in [
        (Wire::OpenAi, openai, "/v1/models", vec!["a", "z"]),
        (Wire::Anthropic, anthropic, "/v1/models?limit=1000", vec!["c-2"]),
        (Wire::Gemini, gemini, "/v1beta/models?pageSize=1000", vec!["g-1"]),
    ] {
        let bench = Bench::speaking(wire, "https://host.example", [says(200, list)]);
        assert_eq!(bench.model.offers().await.unwrap(), expected);
        assert_eq!(bench.asked()[0].0, place);
    }
}

#[tokio::test(start_paused = true)]
async fn another_path_is_tried_and_a_refused_key_is_said_without_it() {
    let bench = Bench::at(
        "https://host.example",
        [says(404, "no"), says(200, json!({"data": [{"id": "m"}]}))],
    );
    assert_eq!(bench.model.offers().await.unwrap(), ["m"]);
    assert_eq!(bench.asked()[1].0, "/models");
    let refused = says(401, json!({"error": {"message": format!("bad key {KEY}")}}));
    let bench = Bench::speaking(Wire::Anthropic, "https://host.example", [refused]);
    let error = bench.model.offers().await.unwrap_err().to_string();
    assert!(error.contains("ANTHROPIC_API_KEY") && !error.contains(KEY), "{error}");
    let page = Bench::at("https://host.example/v1", [says(200, "<html>")]);
    assert!(
        page.model
            .offers()
            .await
            .unwrap_err()
            .to_string()
            .contains("a web page")
    );
}
