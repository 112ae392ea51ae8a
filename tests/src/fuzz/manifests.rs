//! Any text as manifests: it is read, translated and compared, the same each time.

use splitter::config::ClassSettings;
use splitter::k8s::{Manifests, compare, read_defaults, translate};

use super::texts;

/// A file, and the defaults of all Ingresses.
pub fn target(data: &[u8]) {
    let [text, defaults] = texts(data);
    let mut settings = ClassSettings::default();
    if let Ok(defaults) = read_defaults("defaults", &defaults) {
        settings.defaults = defaults.into();
    }
    let (objects, problems) = Manifests::from_text("fuzz", &text);
    for problem in &problems {
        assert!(!problem.message.is_empty() && !problem.effect.is_empty());
    }
    let translation = translate(&objects, &settings);
    assert!(
        translation == translate(&objects, &settings),
        "not the same twice"
    );
    let fates = compare(&objects, &settings, &translation);
    assert_eq!(fates.len(), translation.served);
    assert!(translation.served <= objects.ingresses.len());
}
