//! The page: what is said beside the pictures, and a row for each object.

use std::collections::BTreeSet;

use bytesize::ByteSize;
use maud::{DOCTYPE, Markup, PreEscaped, html};
use sealog_blocking::{Survey, SurveyedObject};

use super::chain::chain;
use super::heat::heat;
use super::sizes::sizes;
use super::{Colours, DRAWN};
use crate::cli::survey::{self, Named};

const STYLE: &str = include_str!("style.css");

/// A survey as a page; ages are told from this time.
pub(super) fn page(survey: &Survey, now_millis: u64) -> Markup {
    let colours = Colours::of(survey);
    let of_more = survey.objects.len() > DRAWN;
    html! {
        (DOCTYPE)
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                // A browser asks for one otherwise.
                link rel="icon" href="data:,";
                title { "Sealog: " (survey.prefix) }
                style { (PreEscaped(STYLE)) }
            }
            body {
                h1 { "Log " (survey.prefix) }
                (figures(survey))
                (problems(survey))
                h2 { "The chain" }
                p.dim {
                    "Each object links to the one before it, and history is the chain that ends at the tip. A \
                     ring is the first object of a writer, a square a claim; what is off the line is not \
                     history. Colours are epochs."
                    @if of_more { " Pictures show the newest " (DRAWN) " objects of " (survey.objects.len()) "." }
                }
                (chain(survey, &colours))
                h2 { "Regions" }
                p.dim { "What each object holds of each region: the darker, the more bytes. Pale is what nobody can read any more." }
                (heat(survey))
                h2 { "Sizes over time" }
                (sizes(survey, &colours, now_millis))
                h2 { "What holds the log" }
                (held(survey))
                h2 { "Objects" }
                (objects(survey, &colours, now_millis))
            }
        }
    }
}

fn figures(survey: &Survey) -> Markup {
    let bytes: u64 = survey.objects.iter().map(|object| object.size).sum();
    let header = |object: &SurveyedObject| object.header.map(|header| header.epoch);
    let epochs: BTreeSet<_> = survey.objects.iter().filter_map(header).collect();
    let tip = survey.tip().map_or("none".into(), |tip| Named::from(tip).to_string());
    let boundary = survey::boundary(survey).map_or("none".into(), |boundary| boundary.to_string());
    let orphans = survey.selection.as_ref().map_or(0, |selection| selection.orphans.len());
    let figures: [(&str, String); 8] = [
        ("Objects", survey.objects.len().to_string()),
        ("Bytes", ByteSize(bytes).to_string()),
        ("In history", survey.catalog.object_count().to_string()),
        ("Off the chain", orphans.to_string()),
        ("Tip (object:epoch)", tip),
        ("Boundary", boundary),
        ("Epochs", epochs.len().to_string()),
        ("Regions", survey.catalog.regions().count().to_string()),
    ];
    html! {
        dl.figures {
            @for (name, figure) in figures { div { dt { (name) } dd { (figure) } } }
        }
    }
}

fn problems(survey: &Survey) -> Markup {
    let mut problems = survey.problems().peekable();
    html! {
        @if problems.peek().is_none() {
            p #problems { "Every header and footer verifies, and no history is lost. (Entries were not read.)" }
        } @else {
            h2.bad { "Problems" }
            ul #problems {
                @for problem in problems { li.bad { (problem.key) ": " (problem.error) } }
            }
        }
        @for key in &survey.ignored {
            p.dim { (key) " is ignored: no object can have this sequence." }
        }
    }
}

fn held(survey: &Survey) -> Markup {
    let held = survey.catalog.held_by();
    html! {
        @if let Some(object) = held.object {
            p {
                "No object below " (held.boundary) " is needed, but " (object) " is: by "
                @for (n, holder) in held.holders.iter().take(10).enumerate() {
                    @if n > 0 { ", " } "region " (holder.region)
                }
                @if held.holders.len() > 10 { " and " (held.holders.len() - 10) " more" }
                "."
            }
            div.scroll {
                table #held {
                    thead { tr {
                        th.number { "Region" } th { "First object" } th.number { "Frees objects" }
                        th.number { "Bytes" } th.number { "With those above" } th.number { "Bytes" }
                    } }
                    tbody {
                        @for hold in &held.most {
                            tr {
                                td.number { (hold.region) }
                                td { (Named::from(hold.object)) }
                                td.number { (hold.frees_objects) }
                                td.number { (ByteSize(hold.frees_bytes)) }
                                td.number { (hold.together_objects) }
                                td.number { (ByteSize(hold.together_bytes)) }
                            }
                        }
                    }
                }
            }
        } @else {
            p { "Nothing: no object is needed." }
        }
    }
}

fn objects(survey: &Survey, colours: &Colours, now_millis: u64) -> Markup {
    html! {
        div.scroll {
            table #objects {
                thead { tr {
                    th.number { "Seq" } th { "Epoch" } th { "Kind" } th { "Status" } th { "Prev" }
                    th.number { "Boundary" } th.number { "Regions" } th.number { "Entries" }
                    th.number { "Bytes" } th { "Age" } th { "Writer" } th { "Error" }
                } }
                tbody {
                    @for object in &survey.objects { (row(survey, object, &colours.get(object), now_millis)) }
                }
            }
        }
    }
}

fn row(survey: &Survey, object: &SurveyedObject, colour: &str, now_millis: u64) -> Markup {
    let entries: u64 = survey::user_segments(object).map(|meta| u64::from(meta.count)).sum();
    let header = object.header;
    let tip = if survey::is_tip(survey, object) { " (tip)" } else { "" };
    html! {
        tr data-seq=(object.sequence) {
            td.number { (object.sequence) }
            td { @if let Some(header) = header {
                span.epoch style={ "background:" (colour) } {} (header.epoch)
            } }
            td { (survey::kind(object).unwrap_or("-")) }
            td.bad[!object.problems.is_empty()] { (survey::status(object)) (tip) }
            td { @if let Some(link) = header.and_then(|header| header.predecessor) { (Named::from(link)) } }
            td.number { @if let Some(header) = header { (header.boundary) } }
            td.number { (survey::user_segments(object).count()) }
            td.number { (entries) }
            td.number { (ByteSize(object.size)) }
            td { (survey::age(now_millis, object.modified_millis)) }
            td { @if let Some(writer) = &object.writer { (writer.name) } }
            td.text.bad { @if let Some(error) = survey::error(object) { (error) } }
        }
    }
}
