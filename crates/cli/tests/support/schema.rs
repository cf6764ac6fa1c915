//! JSON documents against the schemas of docs/schemas/.

use serde_json::Value;

/// What is wrong with `value`; nothing where it has the form of `schema`. Knows the words of
/// JSON Schema that the project's schemas use, and refuses others.
pub(crate) fn check(
    schema: &Value,
    root: &Value,
    value: &Value,
    at: &str,
    wrong: &mut Vec<String>,
) {
    let known = [
        "$schema",
        "$defs",
        "$ref",
        "title",
        "description",
        "type",
        "properties",
        "required",
        "items",
        "enum",
        "const",
        "anyOf",
        "additionalProperties",
    ];
    let words = schema.as_object().expect("a schema is an object");
    for word in words.keys() {
        assert!(known.contains(&word.as_str()), "{word} is not checked here");
    }
    if let Some(name) = schema["$ref"].as_str() {
        let target = root.pointer(name.trim_start_matches('#'));
        return check(target.expect(name), root, value, at, wrong);
    }
    if let Some(choices) = schema["anyOf"].as_array() {
        let fits = choices.iter().any(|choice| {
            let mut wrong = Vec::new();
            check(choice, root, value, at, &mut wrong);
            wrong.is_empty()
        });
        if !fits {
            wrong.push(format!("{at}: none of the forms fits {value}"));
        }
    }
    let types = match &schema["type"] {
        Value::String(one) => vec![one.as_str()],
        Value::Array(types) => types.iter().filter_map(Value::as_str).collect(),
        _ => Vec::new(),
    };
    let is = |name: &&str| match *name {
        "null" => value.is_null(),
        "boolean" => value.is_boolean(),
        "integer" => value.is_u64() || value.is_i64(),
        "number" => value.is_number(),
        "string" => value.is_string(),
        "array" => value.is_array(),
        "object" => value.is_object(),
        other => panic!("{other} is no type"),
    };
    if !types.is_empty() && !types.iter().any(is) {
        wrong.push(format!("{at}: {value} is not of {types:?}"));
    }
    if schema.get("const").is_some_and(|only| only != value) {
        wrong.push(format!("{at}: {value} is not {}", schema["const"]));
    }
    let one_of = schema["enum"].as_array();
    if one_of.is_some_and(|values| !values.contains(value)) {
        wrong.push(format!("{at}: {value} is not one of {}", schema["enum"]));
    }
    for (index, item) in value.as_array().into_iter().flatten().enumerate() {
        if let Some(of) = schema.get("items") {
            check(of, root, item, &format!("{at}[{index}]"), wrong);
        }
    }
    let Some(fields) = value.as_object() else {
        return;
    };
    for name in schema["required"].as_array().into_iter().flatten() {
        if !fields.contains_key(name.as_str().unwrap()) {
            wrong.push(format!("{at}: {name} is missing"));
        }
    }
    for (name, field) in fields {
        let at = format!("{at}.{name}");
        match (
            schema["properties"].get(name),
            schema.get("additionalProperties"),
        ) {
            (Some(of), _) | (None, Some(of)) => check(of, root, field, &at, wrong),
            (None, None) if schema.get("properties").is_some() => {
                wrong.push(format!("{at} is not in the schema"));
            }
            (None, None) => {}
        }
    }
}

#[track_caller]
pub(crate) fn judge(name: &str, document: &[u8]) {
    let path = format!(
        "{}/../../docs/schemas/{name}.json",
        env!("CARGO_MANIFEST_DIR")
    );
    let schema = std::fs::read_to_string(&path).expect(&path);
    let schema: Value = serde_json::from_str(&schema).unwrap();
    let value: Value = serde_json::from_slice(document).expect(name);
    let mut wrong = Vec::new();
    check(&schema, &schema, &value, name, &mut wrong);
    assert!(wrong.is_empty(), "{}", wrong.join("\n"));
}
