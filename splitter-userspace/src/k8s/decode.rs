//! One parsed document to typed objects.

use std::sync::Arc;

use k8s_openapi::Metadata;
use k8s_openapi::api::core::v1::{ConfigMap, Secret, Service};
use k8s_openapi::api::discovery::v1::EndpointSlice;
use k8s_openapi::api::networking::v1::IngressClass;
use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde::de::DeserializeOwned;
use serde_norway::Value;

use super::documents::Document;
use super::header::{Header, api_version};
use super::objects::{Object, Sourced};
use crate::model::{Kind, ObjectRef};

/// The namespace of an object that names none.
const DEFAULT_NAMESPACE: &str = "default";

/// Why a document is not an object.
pub(super) struct Fault {
    /// The object, as far as the document names one.
    pub object: Option<ObjectRef>,
    /// The field, if one is to blame.
    pub field: String,
    /// Name of this kind of fault.
    pub code: &'static str,
    /// What is wrong.
    pub message: String,
}

impl Fault {
    pub(super) fn new(code: &'static str, message: String) -> Self {
        Fault {
            object: None,
            field: String::new(),
            code,
            message,
        }
    }

    pub(super) fn at(mut self, field: impl Into<String>) -> Self {
        self.field = field.into();
        self
    }

    fn of(mut self, object: &ObjectRef) -> Self {
        self.object = Some(object.clone());
        self
    }
}

/// Hands each object in `value`, or the fault in its place, to `each`. Lists are unfolded; kinds
/// that routing does not read are left out.
pub(super) fn decode(
    value: Value,
    document: &Document<'_>,
    source: &str,
    each: &mut dyn FnMut(Result<Object, Fault>),
) {
    match Header::read(&value) {
        Ok(header) if header.is_list() => decode_list(value, &header, source, each),
        Ok(header) => decode_one(value, &header, Some(document), source, each),
        Err(fault) => each(Err(fault)),
    }
}

fn decode_list(
    mut value: Value,
    list: &Header,
    source: &str,
    each: &mut dyn FnMut(Result<Object, Fault>),
) {
    let items = match value.get_mut("items").map(std::mem::take) {
        None | Some(Value::Null) => return,
        Some(Value::Sequence(items)) => items,
        Some(_) => {
            let fault = Fault::new("list-invalid", "items is not a list".to_owned()).at("items");
            return each(Err(fault));
        }
    };
    for (index, mut item) in items.into_iter().enumerate() {
        list.fill(&mut item);
        let header = match Header::read(&item) {
            Ok(header) => header,
            Err(fault) => {
                let field = format!("items[{index}].{}", fault.field);
                each(Err(fault.at(field.trim_end_matches('.'))));
                continue;
            }
        };
        let source = format!("{source}[{index}]");
        if header.is_list() {
            decode_list(item, &header, &source, each);
        } else {
            decode_one(item, &header, None, &source, each);
        }
    }
}

fn decode_one(
    value: Value,
    header: &Header,
    document: Option<&Document<'_>>,
    source: &str,
    each: &mut dyn FnMut(Result<Object, Fault>),
) {
    let Some(kind) = header.known() else {
        tracing::debug!(source, kind = header.kind, "this kind is not read");
        return;
    };
    each(read(value, header, kind, document, source));
}

fn read(
    value: Value,
    header: &Header,
    kind: Kind,
    document: Option<&Document<'_>>,
    source: &str,
) -> Result<Object, Fault> {
    let name = object_ref(&value, kind)?;
    if header.version != "v1" {
        let message = format!(
            "apiVersion {} of {} is not read, only {} is",
            header.api_version(),
            header.kind,
            api_version(kind)
        );
        return Err(Fault::new("version-unsupported", message)
            .at("apiVersion")
            .of(&name));
    }
    quoted("annotations", &value, &name)?;
    quoted("labels", &value, &name)?;
    let typing = Typing {
        value,
        name,
        document,
        source,
    };
    match kind {
        Kind::Ingress => typing.read(Object::Ingress).and_then(complete),
        Kind::IngressClass => typing.read::<IngressClass>(Object::IngressClass),
        Kind::Service => typing.read::<Service>(Object::Service),
        Kind::EndpointSlice => typing.read::<EndpointSlice>(Object::EndpointSlice),
        Kind::Secret => typing.read::<Secret>(Object::Secret),
        Kind::ConfigMap => typing.read::<ConfigMap>(Object::ConfigMap),
        Kind::File => Err(Fault::new(
            "kind-missing",
            "the document is no object".to_owned(),
        )),
    }
}

/// A value whose kind and name are known, on its way to a type.
struct Typing<'a> {
    value: Value,
    name: ObjectRef,
    document: Option<&'a Document<'a>>,
    source: &'a str,
}

impl Typing<'_> {
    fn read<T>(self, wrap: fn(Sourced<T>) -> Object) -> Result<Object, Fault>
    where
        T: DeserializeOwned + Metadata<Ty = ObjectMeta>,
    {
        let name = self.name;
        match serde_norway::from_value::<T>(self.value) {
            Ok(mut object) => {
                let namespace = (!name.namespace.is_empty()).then(|| name.namespace.to_string());
                object.metadata_mut().namespace = namespace;
                Ok(wrap(Sourced {
                    object: Arc::new(object),
                    source: self.source.into(),
                }))
            }
            Err(error) => {
                let message = if name.kind == Kind::Secret {
                    // The error quotes the value that it could not use.
                    "a field has the wrong type, or a value of data is not base64".to_owned()
                } else {
                    located::<T>(self.document).unwrap_or_else(|| error.to_string())
                };
                Err(Fault::new("object-invalid", message).of(&name))
            }
        }
    }
}

/// The same error once more from the text, which knows the path and the line.
fn located<T: DeserializeOwned>(document: Option<&Document<'_>>) -> Option<String> {
    let document = document?;
    let error = serde_norway::from_str::<T>(document.text).err()?;
    Some(document.describe(&error))
}

/// The API server takes no Ingress that routes nothing; here it is most likely half a file.
fn complete(object: Object) -> Result<Object, Fault> {
    if let Object::Ingress(ingress) = &object {
        let spec = ingress.object.spec.as_ref();
        let rules = spec.and_then(|spec| spec.rules.as_ref());
        if rules.is_none_or(Vec::is_empty) && spec.is_none_or(|spec| spec.default_backend.is_none())
        {
            let message = "it has neither rules nor a defaultBackend".to_owned();
            return Err(Fault::new("ingress-empty", message)
                .at("spec")
                .of(&object.object_ref()));
        }
    }
    Ok(object)
}

/// Names the object. A cluster-scoped kind has no namespace, whatever the document says.
fn object_ref(value: &Value, kind: Kind) -> Result<ObjectRef, Fault> {
    let metadata = value.get("metadata");
    let text = |key: &str| {
        let text = metadata.and_then(|metadata| metadata.get(key))?.as_str()?;
        (!text.is_empty()).then_some(text)
    };
    let Some(name) = text("name") else {
        let message = format!("the {} has no name", kind.as_str());
        return Err(Fault::new("name-missing", message).at("metadata.name"));
    };
    let namespace = match kind {
        Kind::IngressClass => "",
        _ => text("namespace").unwrap_or(DEFAULT_NAMESPACE),
    };
    for (field, text) in [("name", name), ("namespace", namespace)] {
        if !is_name(text) {
            let message =
                format!("{text:?} is no name; names are lower case, with digits, - and .");
            return Err(Fault::new("name-invalid", message).at(format!("metadata.{field}")));
        }
    }
    Ok(ObjectRef::new(kind, namespace, name))
}

/// Close to what the API server takes: nothing that could be mistaken for something else in a log
/// line, a label or a path.
fn is_name(text: &str) -> bool {
    let fine = |b: u8| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'-' || b == b'.';
    text.len() <= MAX_NAME && text.bytes().all(fine)
}

/// The longest name of an object, in bytes.
const MAX_NAME: usize = 253;

/// The commonest mistake of hand-written manifests, named by key: `true` or `10` without quotes.
fn quoted(map: &str, value: &Value, name: &ObjectRef) -> Result<(), Fault> {
    let entries = value.get("metadata").and_then(|metadata| metadata.get(map));
    let Some(Value::Mapping(entries)) = entries else {
        return Ok(());
    };
    for (key, value) in entries {
        let Some(key) = key.as_str() else { continue };
        let shown = match value {
            Value::Bool(it) => it.to_string(),
            Value::Number(it) => it.to_string(),
            _ => continue,
        };
        let message = format!("{shown} is not text; write it in quotes: \"{shown}\"");
        return Err(Fault::new("object-invalid", message)
            .at(format!("metadata.{map}.{key}"))
            .of(name));
    }
    Ok(())
}
