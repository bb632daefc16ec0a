//! Parameter expansions, and what they evaluate on the way (design §9).
//!
//! Owns the judgement of `${…}`. Must not know programs.

use brush_parser::word::{Parameter, ParameterExpr, SpecialParameter};

use super::Walk;

impl Walk {
    /// Follows what a parameter expansion evaluates; true when it may give several words even inside double quotes.
    pub(super) fn parameter(&mut self, expression: &ParameterExpr) -> bool {
        use ParameterExpr as P;
        if let Some((parameter, indirect, text)) = with_text(expression) {
            self.nested(text);
            return self.parameter_name(parameter, indirect);
        }
        match expression {
            P::Parameter { parameter, indirect } | P::ParameterLength { parameter, indirect } => {
                self.parameter_name(parameter, *indirect)
            }
            P::AssignDefaultValues {
                parameter,
                indirect,
                default_value,
                ..
            } => {
                self.nested(default_value.as_deref());
                if let Parameter::Named(name)
                | Parameter::NamedWithIndex { name, .. }
                | Parameter::NamedWithAllIndices { name, .. } = parameter
                {
                    self.assigned(name, false);
                }
                self.parameter_name(parameter, *indirect)
            }
            P::ReplaceSubstring {
                parameter,
                indirect,
                pattern,
                replacement,
                ..
            } => {
                self.nested(Some(pattern));
                self.nested(replacement.as_deref());
                self.parameter_name(parameter, *indirect)
            }
            P::Substring {
                parameter,
                indirect,
                offset,
                length,
            } => {
                self.arithmetic(&offset.value);
                if let Some(length) = length {
                    self.arithmetic(&length.value);
                }
                self.parameter_name(parameter, *indirect)
            }
            P::VariableNames { .. } | P::MemberKeys { .. } => true,
            // Transformations (`${x@P}`) evaluate what the variable holds; anything else is new to this program.
            _ => {
                self.runs_anything("a variable's transformation can run commands");
                true
            }
        }
    }

    fn nested(&mut self, text: Option<&str>) {
        if let Some(text) = text {
            self.raw_word(text);
        }
    }

    fn parameter_name(&mut self, parameter: &Parameter, indirect: bool) -> bool {
        if indirect {
            self.runs_anything("an indirect expansion can run commands");
        }
        match parameter {
            Parameter::NamedWithIndex { index, .. } => {
                self.arithmetic(index);
                false
            }
            Parameter::NamedWithAllIndices { .. }
            | Parameter::Special(SpecialParameter::AllPositionalParameters { .. }) => true,
            Parameter::Special(_) | Parameter::Positional(_) | Parameter::Named(_) => false,
        }
    }
}

/// The parameter and the text of an expansion that has one text to be expanded in turn.
fn with_text(expression: &ParameterExpr) -> Option<(&Parameter, bool, Option<&str>)> {
    use ParameterExpr as P;
    match expression {
        P::UseDefaultValues {
            parameter,
            indirect,
            default_value: text,
            ..
        }
        | P::IndicateErrorIfNullOrUnset {
            parameter,
            indirect,
            error_message: text,
            ..
        }
        | P::UseAlternativeValue {
            parameter,
            indirect,
            alternative_value: text,
            ..
        }
        | P::RemoveSmallestSuffixPattern {
            parameter,
            indirect,
            pattern: text,
        }
        | P::RemoveLargestSuffixPattern {
            parameter,
            indirect,
            pattern: text,
        }
        | P::RemoveSmallestPrefixPattern {
            parameter,
            indirect,
            pattern: text,
        }
        | P::RemoveLargestPrefixPattern {
            parameter,
            indirect,
            pattern: text,
        }
        | P::UppercaseFirstChar {
            parameter,
            indirect,
            pattern: text,
        }
        | P::UppercasePattern {
            parameter,
            indirect,
            pattern: text,
        }
        | P::LowercaseFirstChar {
            parameter,
            indirect,
            pattern: text,
        }
        | P::LowercasePattern {
            parameter,
            indirect,
            pattern: text,
        } => Some((parameter, *indirect, text.as_deref())),
        _ => None,
    }
}

/// `$?`, `$#`, `$$`: always one number. `$!` is none: it may be nothing, and then what stands behind it begins the word.
pub(super) fn is_number(expression: &ParameterExpr) -> bool {
    use SpecialParameter as S;
    matches!(
        expression,
        ParameterExpr::Parameter {
            parameter: Parameter::Special(S::PositionalParameterCount | S::LastExitStatus | S::ProcessId),
            indirect: false
        }
    )
}

/// The variable that an expansion gives as it is.
pub(super) fn named(expression: &ParameterExpr) -> Option<&str> {
    match expression {
        ParameterExpr::Parameter {
            parameter: Parameter::Named(name),
            indirect: false,
        } => Some(name),
        _ => None,
    }
}
