//! Loops, conditions and groups: the worst of their parts (design §9).
//!
//! Owns the walk through compound commands and `[[ … ]]`. Must not know programs.

use brush_parser::ast;

use super::Walk;

impl Walk {
    pub(super) fn compound(&mut self, compound: &ast::CompoundCommand) {
        use ast::CompoundCommand as C;
        match compound {
            C::Arithmetic(command) => self.arithmetic(&command.expr.value),
            C::ArithmeticForClause(command) => {
                for part in [&command.initializer, &command.condition, &command.updater]
                    .into_iter()
                    .flatten()
                {
                    self.arithmetic(&part.value);
                }
                self.list(&command.body.list);
            }
            C::BraceGroup(group) => self.list(&group.list),
            C::Subshell(group) => self.list(&group.list),
            C::ForClause(command) => {
                let values = command.values.as_deref().unwrap_or_default();
                for value in values {
                    self.word(value);
                }
                self.looped_over(&command.variable_name, values);
                self.list(&command.body.list);
            }
            C::CaseClause(command) => {
                self.word(&command.value);
                for case in &command.cases {
                    for pattern in &case.patterns {
                        self.word(pattern);
                    }
                    if let Some(body) = &case.cmd {
                        self.list(body);
                    }
                }
            }
            C::IfClause(command) => {
                self.list(&command.condition);
                self.list(&command.then);
                for part in command.elses.iter().flatten() {
                    if let Some(condition) = &part.condition {
                        self.list(condition);
                    }
                    self.list(&part.body);
                }
            }
            C::WhileClause(command) | C::UntilClause(command) => {
                self.list(&command.0);
                self.list(&command.1.list);
            }
            C::Coprocess(_) => self.runs_anything("it starts a coprocess"),
        }
    }

    pub(super) fn extended_test(&mut self, test: &ast::ExtendedTestExpr) {
        use ast::BinaryPredicate as B;
        use ast::ExtendedTestExpr as T;
        match test {
            T::And(left, right) | T::Or(left, right) => {
                self.extended_test(left);
                self.extended_test(right);
            }
            T::Not(inner) | T::Parenthesized(inner) => self.extended_test(inner),
            T::UnaryTest(predicate, word) => {
                if matches!(
                    predicate,
                    ast::UnaryPredicate::ShellVariableIsSetAndAssigned
                        | ast::UnaryPredicate::ShellVariableIsSetAndNameRef
                ) {
                    self.runs_anything("a test of a variable's name can run commands");
                }
                self.word(word);
            }
            T::BinaryTest(predicate, left, right) => {
                let arithmetic = matches!(
                    predicate,
                    B::ArithmeticEqualTo
                        | B::ArithmeticNotEqualTo
                        | B::ArithmeticLessThan
                        | B::ArithmeticLessThanOrEqualTo
                        | B::ArithmeticGreaterThan
                        | B::ArithmeticGreaterThanOrEqualTo
                );
                for word in [left, right] {
                    self.word(word);
                    if arithmetic {
                        let value = word.value.as_str();
                        let bare = value.strip_prefix('"').and_then(|rest| rest.strip_suffix('"'));
                        self.arithmetic(bare.unwrap_or(value));
                    }
                }
            }
        }
    }
}
