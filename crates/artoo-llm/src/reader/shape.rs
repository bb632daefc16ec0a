//! Schemas, compiled once (design §18).
//!
//! Owns validation. A schema is ours, so one that does not compile is a programming error, reported as such.

use std::collections::HashMap;
use std::sync::{Arc, Mutex, OnceLock, PoisonError};

use jsonschema::Validator;
use serde_json::Value;
use thiserror::Error;

use super::short;

/// A schema that does not compile.
#[derive(Clone, Debug, Error, PartialEq, Eq)]
#[error("the schema `{name}` is not valid: {reason}")]
pub struct ShapeError {
    /// The schema's name on the wire.
    pub name: String,
    /// What is wrong with it.
    pub reason: String,
}

/// A compiled schema.
///
/// It is kept in two forms. Fields that the schema does not know do no harm and are tolerated in what a model wrote
/// itself; in what had to be rebuilt they are the mark of a wrong guess, and the schema holds as it stands.
#[derive(Debug)]
pub struct Shape {
    tolerant: Validator,
    /// Compiled when it is needed, which is seldom: most answers need no rebuilding.
    strict: OnceLock<Option<Validator>>,
    schema: Value,
}

impl Shape {
    /// Compiles a schema.
    ///
    /// # Errors
    /// [`ShapeError`] when it is none.
    pub fn compile(name: &str, schema: &Value) -> Result<Self, ShapeError> {
        let compile = |schema: &Value| {
            // What role schemas use means the same in every draft; the meta-schema of this one is the smallest,
            // and every process pays for it once.
            jsonschema::draft7::new(schema).map_err(|error| ShapeError {
                name: name.to_owned(),
                reason: short(&error.to_string()),
            })
        };
        let mut tolerant = schema.clone();
        allow_unknown_fields(&mut tolerant);
        Ok(Self {
            tolerant: compile(&tolerant)?,
            strict: OnceLock::new(),
            schema: schema.clone(),
        })
    }

    /// Why the value does not fit, unknown fields left aside.
    ///
    /// # Errors
    /// The first fault with its place, as one line.
    pub fn check(&self, value: &Value) -> Result<(), String> {
        check(&self.tolerant, value)
    }

    /// Why the value does not fit.
    ///
    /// # Errors
    /// The first fault with its place, as one line.
    pub fn check_strictly(&self, value: &Value) -> Result<(), String> {
        // It differs from the tolerant form, which compiled, in nothing that could keep it from compiling.
        let strict = self.strict.get_or_init(|| jsonschema::draft7::new(&self.schema).ok());
        check(strict.as_ref().unwrap_or(&self.tolerant), value)
    }
}

fn check(validator: &Validator, value: &Value) -> Result<(), String> {
    validator.validate(value).map_err(|error| {
        let place = error.instance_path().to_string();
        let place = if place.is_empty() {
            "the object".to_owned()
        } else {
            format!("`{place}`")
        };
        short(&format!("{place}: {}", short(&error.to_string())))
    })
}

fn allow_unknown_fields(schema: &mut Value) {
    match schema {
        Value::Object(fields) => {
            if fields.get("additionalProperties") == Some(&Value::Bool(false)) {
                fields.remove("additionalProperties");
            }
            fields.values_mut().for_each(allow_unknown_fields);
        }
        Value::Array(items) => items.iter_mut().for_each(allow_unknown_fields),
        Value::Null | Value::Bool(_) | Value::Number(_) | Value::String(_) => {}
    }
}

/// The schemas of an installation, compiled on first use.
#[derive(Debug, Default)]
pub struct Shapes {
    compiled: Mutex<HashMap<String, (Value, Arc<Shape>)>>,
}

impl Shapes {
    /// The compiled form of a schema; compiled anew only when a name comes with another schema.
    ///
    /// # Errors
    /// [`ShapeError`] when it is none.
    pub fn get(&self, name: &str, schema: &Value) -> Result<Arc<Shape>, ShapeError> {
        let mut compiled = self.compiled.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some((known, shape)) = compiled.get(name)
            && known == schema
        {
            return Ok(Arc::clone(shape));
        }
        let shape = Arc::new(Shape::compile(name, schema)?);
        compiled.insert(name.to_owned(), (schema.clone(), Arc::clone(&shape)));
        Ok(shape)
    }
}
