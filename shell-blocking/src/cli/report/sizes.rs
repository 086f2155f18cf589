//! How large objects were over time.

use bytesize::ByteSize;
use maud::{Markup, html};
use sealog_blocking::Survey;

use super::{Colours, LEFT, drawn};
use crate::cli::survey;

const WIDTH: usize = 900;
const HEIGHT: usize = 200;
const TOP: usize = 20;
const BOTTOM: usize = 24;

pub(super) fn sizes(survey: &Survey, colours: &Colours, now_millis: u64) -> Markup {
    let objects = drawn(survey);
    let times = || objects.iter().map(|object| object.modified_millis);
    let (Some(first), Some(last), Some(largest)) =
        (times().min(), times().max(), objects.iter().map(|object| object.size).max())
    else {
        return html! { p.dim { "There is no object." } };
    };
    let (span, largest) = ((last - first).max(1) as f64, largest.max(1) as f64);
    let room = (WIDTH - LEFT - 20) as f64;
    let x = |millis: u64| LEFT as f64 + 5.0 + room * (millis - first) as f64 / span;
    let base = HEIGHT - BOTTOM;
    let y = |size: u64| base as f64 - (base - TOP) as f64 * size as f64 / largest;
    html! {
        div.scroll {
            svg #sizes role="img" width=(WIDTH) height=(HEIGHT) viewBox={ "0 0 " (WIDTH) " " (HEIGHT) } {
                title { "The size of each object over the time at which it was written" }
                line.axis x1=(LEFT) y1=(base) x2=(WIDTH) y2=(base) {}
                line.axis x1=(LEFT) y1=(TOP) x2=(WIDTH) y2=(TOP) {}
                text x=(LEFT - 8) y=(base + 4) text-anchor="end" { "0" }
                text x=(LEFT - 8) y=(TOP + 4) text-anchor="end" { (ByteSize(largest as u64)) }
                text x=(LEFT) y=(HEIGHT - 6) { (survey::age(now_millis, first)) " ago" }
                text x=(WIDTH - 4) y=(HEIGHT - 6) text-anchor="end" { (survey::age(now_millis, last)) " ago" }
                @for object in objects {
                    @let fill = colours.get(object);
                    @let (x, y) = (format!("{:.1}", x(object.modified_millis)), format!("{:.1}", y(object.size)));
                    line x1=(x) y1=(base) x2=(x) y2=(y) stroke=(fill) stroke-width="2" opacity="0.5" {}
                    circle cx=(x) cy=(y) r="3.5" fill=(fill) {
                        title { "object " (object.sequence) ": " (object.size) " bytes" }
                    }
                }
            }
        }
    }
}
