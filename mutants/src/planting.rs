//! Which changes there are, and how each is put into a file behind its switch.
//!
//! Owns the changes: one operator, one negation, one constant at a time. Text inside macros, tests and what the compiler computes stay as
//! they are.

use quote::{ToTokens, quote};
use syn::visit::Visit;
use syn::visit_mut::{self, VisitMut};
use syn::{BinOp, Expr, ExprLit, Lit, UnOp, parse_quote};

/// One change.
pub struct Mutant {
    pub number: usize,
    pub file: String,
    /// The function.
    pub within: String,
    pub from: String,
    pub to: String,
}

/// Puts changes into a file.
pub struct Planter<'a> {
    file: &'a str,
    /// The function.
    within: String,
    /// Whether the compiler computes what is visited, so that nothing can be switched.
    fixed: bool,
    mutants: &'a mut Vec<Mutant>,
}

impl<'a> Planter<'a> {
    /// Every change is added to these.
    pub const fn new(file: &'a str, mutants: &'a mut Vec<Mutant>) -> Self {
        Self {
            file,
            within: String::new(),
            fixed: false,
            mutants,
        }
    }
}

impl Planter<'_> {
    /// `place` as it is unless the switch of `changed` is on. `original` is without the changes inside.
    fn offer(&mut self, place: &mut Expr, original: &Expr, changed: &Expr) {
        let number = self.mutants.len();
        self.mutants.push(Mutant {
            number,
            file: self.file.to_owned(),
            within: self.within.clone(),
            from: words(original),
            to: words(changed),
        });
        let present = place.clone();
        *place = parse_quote!((if crate::mutant::on(#number) { #changed } else { #present }));
    }

    fn within(&mut self, name: &syn::Ident, work: impl FnOnce(&mut Self)) {
        let outer = std::mem::replace(&mut self.within, name.to_string());
        work(self);
        self.within = outer;
    }
}

impl VisitMut for Planter<'_> {
    fn visit_item_mut(&mut self, item: &mut syn::Item) {
        match item {
            // A table is computed by the compiler, but not the closures in it.
            syn::Item::Const(syn::ItemConst { ident, expr, .. })
            | syn::Item::Static(syn::ItemStatic { ident, expr, .. }) => {
                let (name, outer) = (ident.clone(), std::mem::replace(&mut self.fixed, true));
                self.within(&name, |planter| planter.visit_expr_mut(expr));
                self.fixed = outer;
            }
            syn::Item::Macro(_) => {}
            syn::Item::Mod(module) if is_test(&module.attrs) => {}
            syn::Item::Fn(function) if function.sig.constness.is_some() || is_test(&function.attrs) => {}
            syn::Item::Fn(function) => {
                let name = function.sig.ident.clone();
                self.within(&name, |planter| visit_mut::visit_item_fn_mut(planter, function));
            }
            other => visit_mut::visit_item_mut(self, other),
        }
    }

    fn visit_impl_item_mut(&mut self, item: &mut syn::ImplItem) {
        match item {
            syn::ImplItem::Fn(function) if function.sig.constness.is_none() => {
                let name = function.sig.ident.clone();
                self.within(&name, |planter| visit_mut::visit_impl_item_fn_mut(planter, function));
            }
            _ => {}
        }
    }

    fn visit_expr_closure_mut(&mut self, closure: &mut syn::ExprClosure) {
        let outer = std::mem::replace(&mut self.fixed, false);
        self.visit_expr_mut(&mut closure.body);
        self.fixed = outer;
    }

    fn visit_expr_repeat_mut(&mut self, repeat: &mut syn::ExprRepeat) {
        // Its length is computed by the compiler.
        self.visit_expr_mut(&mut repeat.expr);
    }

    fn visit_expr_mut(&mut self, place: &mut Expr) {
        let original = place.clone();
        visit_mut::visit_expr_mut(self, place);
        let changes = if self.fixed { Vec::new() } else { changes(&original) };
        for changed in changes {
            self.offer(place, &original, &changed);
        }
    }

    fn visit_pat_mut(&mut self, _: &mut syn::Pat) {}

    fn visit_type_mut(&mut self, _: &mut syn::Type) {}

    fn visit_attribute_mut(&mut self, _: &mut syn::Attribute) {}
}

fn is_test(attributes: &[syn::Attribute]) -> bool {
    let words = |attribute: &syn::Attribute| attribute.meta.to_token_stream().to_string();
    attributes.iter().any(|a| words(a).contains("test"))
}

/// What an expression can be changed into: one operator, one negation, one constant.
fn changes(original: &Expr) -> Vec<Expr> {
    match original {
        Expr::Binary(binary) if !binds(original) => {
            let others: &[BinOp] = match binary.op {
                BinOp::And(_) => &[BinOp::Or(Default::default())],
                BinOp::Or(_) => &[BinOp::And(Default::default())],
                BinOp::Eq(_) => &[BinOp::Ne(Default::default())],
                BinOp::Ne(_) => &[BinOp::Eq(Default::default())],
                BinOp::Lt(_) => &[BinOp::Le(Default::default())],
                BinOp::Le(_) => &[BinOp::Lt(Default::default())],
                BinOp::Gt(_) => &[BinOp::Ge(Default::default())],
                BinOp::Ge(_) => &[BinOp::Gt(Default::default())],
                _ => &[],
            };
            let with = |op: &BinOp| {
                Expr::Binary(syn::ExprBinary {
                    op: *op,
                    ..binary.clone()
                })
            };
            others.iter().map(with).collect()
        }
        Expr::Unary(unary) if matches!(unary.op, UnOp::Not(_)) => vec![(*unary.expr).clone()],
        Expr::Lit(ExprLit {
            lit: Lit::Bool(bool), ..
        }) => {
            let turned = !bool.value;
            vec![parse_quote!(#turned)]
        }
        Expr::MethodCall(call) => {
            let other = match call.method.to_string().as_str() {
                "any" => "all",
                "all" => "any",
                "is_some_and" => "is_none_or",
                "is_none_or" => "is_some_and",
                "min" => "max",
                "max" => "min",
                "starts_with" | "ends_with" | "contains" | "contains_key" | "is_empty" | "is_some" | "is_none"
                | "is_match" => {
                    return vec![parse_quote!(!(#original))];
                }
                _ => return Vec::new(),
            };
            let method = syn::Ident::new(other, call.method.span());
            vec![Expr::MethodCall(syn::ExprMethodCall { method, ..call.clone() })]
        }
        _ => Vec::new(),
    }
}

/// Whether an expression binds names, as `let` in a condition does.
fn binds(expression: &Expr) -> bool {
    struct Lets(bool);
    impl Visit<'_> for Lets {
        fn visit_expr_let(&mut self, _: &syn::ExprLet) {
            self.0 = true;
        }

        fn visit_block(&mut self, _: &syn::Block) {}
    }
    let mut lets = Lets(false);
    lets.visit_expr(expression);
    lets.0
}

/// An expression in one short line.
fn words(expression: &Expr) -> String {
    let text = quote!(#expression).to_string();
    let text = text
        .replace(" . ", ".")
        .replace(" (", "(")
        .replace("& ", "&")
        .replace(" :: ", "::");
    text.chars().take(160).collect()
}
