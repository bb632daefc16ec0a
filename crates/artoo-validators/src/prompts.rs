//! A validator's fixed text, filled from a template with the laws in front (design §18).
//!
//! Owns the one shape of both validators' prompts. Knows neither template.

/// Declares `Prompts` for a template that is embedded in the program.
macro_rules! fixed_text {
    ($role:literal, $template:literal) => {
        const TEMPLATE: &str = include_str!($template);
        const LAWS: &str = include_str!("../../prompts/laws.md");

        #[doc = concat!($role, "'s fixed text.")]
        #[derive(Clone, Debug, PartialEq, Eq, serde::Serialize, serde::Deserialize)]
        pub struct Prompts {
            /// The system message.
            pub system: String,
        }

        impl Prompts {
            /// From a template with the one placeholder `{{laws}}`.
            ///
            /// # Errors
            /// [`PromptError`](artoo_protocol::prompt::PromptError) when the template has another placeholder, or not this one.
            pub fn new(template: &str, laws: &str) -> Result<Self, artoo_protocol::prompt::PromptError> {
                artoo_protocol::prompt::with_laws(template, laws).map(|system| Self { system })
            }
        }

        impl Default for Prompts {
            fn default() -> Self {
                // A test proves that the embedded template can be filled.
                Self::new(TEMPLATE, LAWS).unwrap_or_else(|_| Self {
                    system: TEMPLATE.to_owned(),
                })
            }
        }
    };
}

pub(crate) use fixed_text;
