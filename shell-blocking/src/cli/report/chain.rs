//! The chain as a drawing: history on one line, what is off it below.

use std::collections::BTreeMap;

use maud::{Markup, html};
use sealog_blocking::{ObjectSeq, ObjectStatus, Survey, SurveyedObject};

use super::{Colours, LEFT, STEP, drawn, x};
use crate::cli::survey;

const RAIL: usize = 60;
const OFF: usize = 120;
const HEIGHT: usize = 165;

pub(super) fn chain(survey: &Survey, colours: &Colours) -> Markup {
    let objects = drawn(survey);
    let width = x(objects.len()) + STEP;
    let places: BTreeMap<ObjectSeq, (usize, usize)> =
        objects.iter().enumerate().map(|(n, o)| (o.sequence, (x(n), y(survey, o)))).collect();
    html! {
        div.scroll {
            svg #chain role="img" width=(width) height=(HEIGHT) viewBox={ "0 0 " (width) " " (HEIGHT) } {
                title { "The chain: objects of history on a line, what is off it below, epochs in colour" }
                text x="6" y=(RAIL + 4) { "history" }
                text x="6" y=(OFF + 4) { "off it" }
                line.rail x1=(LEFT) y1=(RAIL) x2=(width) y2=(RAIL) {}
                @for object in objects { (link(&places, object)) }
                @if let Some(at) = boundary(survey, objects) {
                    line.boundary x1=(at) y1="24" x2=(at) y2=(HEIGHT - 20) {}
                    text.mark x=(at + 4) y="32" { "boundary " (survey::boundary(survey).unwrap_or_default()) }
                }
                @for (n, object) in objects.iter().enumerate() {
                    (node(survey, object, x(n), &colours.get(object)))
                    @if let Some(missing) = gap(objects, n) {
                        text x=(x(n) - STEP / 2) y=(RAIL - 18) text-anchor="middle" {
                            "⋯" title { (missing) }
                        }
                    }
                }
            }
        }
    }
}

/// Whether an object stands on the line of history; one with a damaged table does, if its header
/// says so.
fn is_history(survey: &Survey, object: &SurveyedObject) -> bool {
    let selection = survey.selection.iter();
    let mut chains = selection.flat_map(|selection| [&selection.chain, &selection.passed]);
    chains.any(|chain| chain.binary_search(&object.sequence).is_ok())
}

fn y(survey: &Survey, object: &SurveyedObject) -> usize {
    if is_history(survey, object) { RAIL } else { OFF }
}

/// From an object to the one that it names; into nothing, if that is not there.
fn link(places: &BTreeMap<ObjectSeq, (usize, usize)>, object: &SurveyedObject) -> Markup {
    let named = object.header.and_then(|header| header.predecessor);
    let (Some(link), Some((x1, y1))) = (named, places.get(&object.sequence)) else {
        return html! {};
    };
    if link.sequence >= object.sequence {
        // A claim names itself.
        return html! {};
    }
    match places.get(&link.sequence) {
        Some((x2, y2)) if y1 == y2 && x1 - x2 <= STEP => html! {
            line.link x1=(x1) y1=(y1) x2=(x2) y2=(y2) {}
        },
        Some((x2, y2)) => {
            let (middle, bow) = ((x1 + x2) / 2, if *y1 == RAIL { RAIL - 26 } else { OFF - 24 });
            html! {
                path.link.off[*y1 == OFF] d={ "M" (x1) " " (y1) " Q" (middle) " " (bow) " " (x2) " " (y2) } {}
            }
        }
        None => html! {
            path.link.off d={ "M" (x1) " " (y1) " l-" (STEP / 2) " 0" } {}
        },
    }
}

fn node(survey: &Survey, object: &SurveyedObject, x: usize, fill: &str) -> Markup {
    let y = y(survey, object);
    let is_tip = survey::is_tip(survey, object);
    let is_below = object.status == ObjectStatus::BelowBoundary;
    let is_damaged = !object.problems.is_empty();
    html! {
        g.object data-seq=(object.sequence) data-status=(survey::status(object)) {
            title { (said(object)) }
            @if survey::kind(object) == Some("claim") {
                rect.below[is_below].damaged[is_damaged] x=(x - 6) y=(y - 6) width="12" height="12" fill=(fill) {}
            } @else {
                circle.tip[is_tip].below[is_below].damaged[is_damaged] cx=(x) cy=(y) r="8" fill=(fill) {}
            }
            @if survey::kind(object) == Some("start") {
                circle cx=(x) cy=(y) r="3" fill="var(--paper)" {}
            }
            text x=(x) y=(y + 22) text-anchor="middle" { (short(object.sequence.0)) }
            @if is_tip { text.mark x=(x) y=(y - 14) text-anchor="middle" { "tip" } }
        }
    }
}

/// What is seen with the pointer on an object.
fn said(object: &SurveyedObject) -> String {
    let kind = survey::kind(object).unwrap_or("damaged object");
    let epoch = object.header.map(|header| format!(" of epoch {}", header.epoch));
    let error = survey::error(object).map(|error| format!(": {error}"));
    let (epoch, error) = (epoch.unwrap_or_default(), error.unwrap_or_default());
    format!("{kind} {}{epoch}, {} bytes{error}", object.sequence, object.size)
}

/// The last digits of a long number: its neighbours and the table have the rest.
pub(super) fn short(sequence: u64) -> String {
    if sequence < 10_000 { sequence.to_string() } else { format!("…{:03}", sequence % 1000) }
}

fn boundary(survey: &Survey, objects: &[SurveyedObject]) -> Option<usize> {
    let boundary = survey::boundary(survey)?;
    let at = objects.partition_point(|object| object.sequence.0 < boundary);
    Some(x(at) - STEP / 2)
}

/// The sequences before an object at which nothing stands.
fn gap(objects: &[SurveyedObject], n: usize) -> Option<String> {
    let before = objects.get(n.checked_sub(1)?)?.sequence.0;
    let (first, last) = (before + 1, objects.get(n)?.sequence.0 - 1);
    (first <= last).then(|| format!("nothing stands at sequences {first} to {last}"))
}
