//! `traffic-class`: who may call, by where they are. What cannot be read closes the Ingress.

use crate::k8s::translate::View;
use crate::k8s::translate::report::Problems;
use crate::model::{BackendFault, TrafficClass};

const KEY: &str = "traffic-class";

/// The callers that the paths of an Ingress are for; none is everybody.
///
/// # Errors
/// When it cannot be told.
pub(super) fn read(
    view: &View<'_>,
    problems: &mut Problems,
) -> Result<Option<TrafficClass>, BackendFault> {
    let annotation = view.annotations.get(KEY);
    let Some(annotation) = annotation.filter(|it| it.is_own()) else {
        return Ok(None);
    };
    match annotation.value.trim() {
        "all" => Ok(None),
        "north-south" => Ok(Some(TrafficClass::NorthSouth)),
        "east-west" => Ok(Some(TrafficClass::EastWest)),
        other => {
            problems.error(
                &view.subject,
                annotation.field(),
                "traffic-class-invalid",
                format!("{other:?} is none of all, north-south, east-west"),
                "every path of the Ingress answers 503, as nobody can tell who may call it",
            );
            Err(BackendFault::GuardInvalid)
        }
    }
}
