//! As much of Helm's templates as the chart uses: values by path, `if`, `range`, `eq`, `ne`,
//! `toYaml`, `quote`, `nindent`, `default`, `.Files.Get`. Anything else is an error.

use anyhow::{Context as _, Result, bail};
use serde_json::Value;

/// Fills in a template.
pub(super) fn render(source: &str, data: &Value) -> Result<String> {
    let pieces = pieces(source)?;
    let mut rest = pieces.as_slice();
    let mut text = String::new();
    block(&mut rest, data, data, true, &mut text)?;
    if let Some(piece) = rest.first() {
        bail!("{piece:?} without a beginning");
    }
    Ok(text)
}

#[derive(Debug)]
enum Piece<'a> {
    Text(&'a str),
    Action(&'a str),
}

/// Text and actions in turn, with the blanks off that `{{-` and `-}}` take.
fn pieces(source: &str) -> Result<Vec<Piece<'_>>> {
    let mut pieces = Vec::new();
    let mut rest = source;
    let mut trim = false;
    while let Some((before, after)) = rest.split_once("{{") {
        let (mut action, after) = after.split_once("}}").context("{{ without }}")?;
        let mut before = if trim { before.trim_start() } else { before };
        if let Some(inner) = action.strip_prefix('-') {
            (before, action) = (before.trim_end(), inner);
        }
        trim = action.ends_with('-');
        pieces.push(Piece::Text(before));
        pieces.push(Piece::Action(action.trim_end_matches('-').trim()));
        rest = after;
    }
    pieces.push(Piece::Text(if trim { rest.trim_start() } else { rest }));
    Ok(pieces)
}

/// Writes up to the `end` or `else` of a block, or up to the end of the source; nothing when it is
/// not `live`.
fn block(
    rest: &mut &[Piece<'_>],
    root: &Value,
    dot: &Value,
    live: bool,
    out: &mut String,
) -> Result<()> {
    while let Some((piece, after)) = rest.split_first() {
        let action = match piece {
            Piece::Text(text) => {
                if live {
                    out.push_str(text);
                }
                *rest = after;
                continue;
            }
            Piece::Action("end" | "else") => return Ok(()),
            Piece::Action(action) => *action,
        };
        *rest = after;
        if let Some(condition) = action.strip_prefix("if ") {
            let holds = live && is_true(&value(condition, root, dot)?);
            block(rest, root, dot, holds, out)?;
            if matches!(rest.first(), Some(Piece::Action("else"))) {
                *rest = &rest[1..];
                block(rest, root, dot, live && !holds, out)?;
            }
            end(rest, action)?;
        } else if let Some(list) = action.strip_prefix("range ") {
            let items = match value(list, root, dot)? {
                Value::Array(items) if live => items,
                _ => Vec::new(),
            };
            let body = *rest;
            // Once without a word, to find its end.
            block(rest, root, dot, false, out)?;
            for item in &items {
                block(&mut &*body, root, item, true, out)?;
            }
            end(rest, action)?;
        } else if live {
            out.push_str(&shown(&value(action, root, dot)?));
        }
    }
    Ok(())
}

fn end(rest: &mut &[Piece<'_>], action: &str) -> Result<()> {
    match rest.split_first() {
        Some((Piece::Action("end"), after)) => *rest = after,
        _ => bail!("{action} without an end"),
    }
    Ok(())
}

/// What a pipeline comes to.
fn value(pipeline: &str, root: &Value, dot: &Value) -> Result<Value> {
    let mut steps = pipeline.split('|').map(str::trim);
    let first = steps.next().unwrap_or("");
    let mut found = match first.split_once(' ') {
        Some(("toYaml", path)) => {
            let text = serde_norway::to_string(&operand(path, root, dot)?)?;
            Value::String(text.trim_end().to_owned())
        }
        Some((".Files.Get", path)) => {
            let path = shown(&operand(path, root, dot)?);
            let files = root.get("Files").and_then(|files| files.get(&path));
            files
                .with_context(|| format!("there is no file {path}"))?
                .clone()
        }
        Some((word @ ("eq" | "ne"), operands)) => {
            let (a, b) = operands.split_once(' ').context("two operands")?;
            let equal = operand(a, root, dot)? == operand(b, root, dot)?;
            Value::Bool(equal == (word == "eq"))
        }
        _ => operand(first, root, dot)?,
    };
    for step in steps {
        found = match step.split_once(' ') {
            None if step == "quote" => Value::String(format!("{:?}", shown(&found))),
            Some(("nindent", spaces)) => {
                let line = format!("\n{}", " ".repeat(spaces.parse()?));
                let text = shown(&found);
                let text: String = text.lines().map(|it| format!("{line}{it}")).collect();
                Value::String(text)
            }
            Some(("default", other)) if !is_true(&found) => operand(other, root, dot)?,
            Some(("default", _)) => found,
            _ => bail!("{step} is not known here"),
        };
    }
    Ok(found)
}

/// A text in quotes, the dot, or a path from the top.
fn operand(text: &str, root: &Value, dot: &Value) -> Result<Value> {
    if text == "." {
        return Ok(dot.clone());
    }
    if let Some(inner) = text.strip_prefix('"').and_then(|it| it.strip_suffix('"')) {
        return Ok(Value::String(inner.to_owned()));
    }
    let path = text.strip_prefix('.');
    let path = path.with_context(|| format!("{text} is not known here"))?;
    let mut found = root;
    for name in path.split('.') {
        found = found
            .get(name)
            .with_context(|| format!("there is no {text}"))?;
    }
    Ok(found.clone())
}

fn is_true(value: &Value) -> bool {
    match value {
        Value::Null => false,
        Value::Bool(it) => *it,
        Value::Number(it) => it.as_f64() != Some(0.0),
        Value::String(it) => !it.is_empty(),
        Value::Array(it) => !it.is_empty(),
        Value::Object(it) => !it.is_empty(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => text.clone(),
        Value::Null => String::new(),
        other => other.to_string(),
    }
}

#[cfg(test)]
#[allow(clippy::unwrap_used, reason = "a test fails by panicking")]
mod tests {
    use serde_json::json;

    use super::*;

    fn made(source: &str) -> String {
        let data = json!({"Values": {
            "text": "a", "none": "", "no": false, "yes": true, "number": 7,
            "list": ["x", "y"], "map": {"b": 1, "a": {"c": [2]}}, "empty": [],
        }});
        render(source, &data).unwrap()
    }

    #[test]
    fn values_are_put_in() {
        assert_eq!(made("{{ .Values.text }}-{{.Values.number}}"), "a-7");
        assert_eq!(made("p: {{ .Values.number | quote }}"), "p: \"7\"");
        assert_eq!(made("{{ .Values.none | default .Values.text }}"), "a");
        assert_eq!(made("{port: {{ .Values.number }}}"), "{port: 7}");
    }

    #[test]
    fn dashes_take_blanks_and_lines() {
        assert_eq!(made("a\n  {{- .Values.text }}\nb"), "aa\nb");
        assert_eq!(made("a {{ .Values.text -}} \n b"), "a ab");
    }

    #[test]
    fn files_are_put_in_whole() {
        let data = json!({"Files": {"a/b.json": "{\n1}\n"}});
        let text = render(
            "x: |\n  {{- .Files.Get \"a/b.json\" | nindent 2 }}\n",
            &data,
        )
        .unwrap();
        assert_eq!(text, "x: |\n  {\n  1}\n");
        assert!(render("{{ .Files.Get \"c\" }}", &data).is_err());
    }

    #[test]
    fn conditions_choose() {
        let source = "{{- if .Values.WORD }}\nyes\n{{- else }}\nno\n{{- end }}\n";
        for (word, expected) in [
            ("text", "\nyes\n"),
            ("yes", "\nyes\n"),
            ("none", "\nno\n"),
            ("no", "\nno\n"),
            ("empty", "\nno\n"),
        ] {
            assert_eq!(made(&source.replace("WORD", word)), expected, "{word}");
        }
        assert_eq!(made("{{ if eq .Values.text \"a\" }}1{{ end }}"), "1");
        assert_eq!(made("{{ if ne .Values.text \"a\" }}1{{ end }}"), "");
        let nested = "{{ if .Values.no }}{{ if .Values.yes }}1{{ end }}2{{ end }}3";
        assert_eq!(made(nested), "3");
    }

    #[test]
    fn lists_repeat() {
        assert_eq!(
            made("{{ range .Values.list }}<{{ . }}>{{ end }}!"),
            "<x><y>!"
        );
        assert_eq!(made("{{ range .Values.empty }}<{{ . }}>{{ end }}!"), "!");
    }

    #[test]
    fn structures_are_indented() {
        let text = made("m:\n  {{- toYaml .Values.map | nindent 2 }}\n");
        let value: Value = serde_norway::from_str(&text).unwrap();
        assert_eq!(value, json!({"m": {"a": {"c": [2]}, "b": 1}}));
    }

    #[test]
    fn what_is_not_known_is_an_error() {
        for source in [
            "{{ .Values.missing }}",
            "{{ include \"x\" . }}",
            "{{ .Values.text | upper }}",
            "{{ if .Values.text }}",
            "{{ end }}",
            "{{ .Values.text",
        ] {
            let data = json!({"Values": {"text": "a"}});
            assert!(render(source, &data).is_err(), "{source}");
        }
    }
}
