//! What S3 writes.

use super::bucket::Stored;

pub(super) fn unescape(text: &str) -> String {
    let mut out = Vec::with_capacity(text.len());
    let mut rest = text.as_bytes();
    while let Some((&byte, behind)) = rest.split_first() {
        let escaped = behind.get(..2).and_then(|hex| std::str::from_utf8(hex).ok());
        let escaped = escaped.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        match (byte, escaped) {
            (b'%', Some(byte)) => {
                out.push(byte);
                rest = &behind[2..];
            }
            (byte, _) => {
                out.push(byte);
                rest = behind;
            }
        }
    }
    String::from_utf8_lossy(&out).into_owned()
}

pub(super) fn error_document(code: &str, message: &str) -> String {
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n<Error><Code>{code}</Code>\
         <Message>{message}</Message><RequestId>0123456789ABCDEF</RequestId></Error>"
    )
}

pub(super) struct Page<'a> {
    pub(super) prefix: &'a str,
    pub(super) contents: Vec<(&'a str, u64, u64)>,
    pub(super) is_truncated: bool,
    pub(super) token: Option<String>,
}

impl Page<'_> {
    pub(super) fn xml(&self) -> String {
        let contents: String = self
            .contents
            .iter()
            .map(|(key, size, modified)| {
                format!(
                    "<Contents><Key>{key}</Key><LastModified>{}</LastModified>\
                     <ETag>&quot;{modified:x}&quot;</ETag><Size>{size}</Size>\
                     <StorageClass>STANDARD</StorageClass></Contents>",
                    date_in_xml(*modified)
                )
            })
            .collect();
        let token = self.token.as_ref().map_or(String::new(), |token| {
            format!("<NextContinuationToken>{token}</NextContinuationToken>")
        });
        format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
             <ListBucketResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">\
             <Name>{}</Name><Prefix>{}</Prefix><KeyCount>{}</KeyCount><MaxKeys>1000</MaxKeys>\
             <IsTruncated>{}</IsTruncated>{token}{contents}</ListBucketResult>",
            super::BUCKET,
            self.prefix,
            self.contents.len(),
            self.is_truncated,
        )
    }
}

pub(super) fn deleted(answers: &[(String, Option<&'static str>)]) -> String {
    let answers: String = answers
        .iter()
        .map(|(key, refused)| match refused {
            None => format!("<Deleted><Key>{key}</Key></Deleted>"),
            Some(code) => {
                format!("<Error><Key>{key}</Key><Code>{code}</Code><Message>no</Message></Error>")
            }
        })
        .collect();
    format!(
        "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n\
         <DeleteResult xmlns=\"http://s3.amazonaws.com/doc/2006-03-01/\">{answers}</DeleteResult>"
    )
}

pub(super) fn etag(stored: &Stored) -> String {
    format!("\"{:x}-{:x}\"", stored.version, stored.bytes.len())
}

/// Year, month and day of a day since 1970.
fn civil(day: u64) -> (u64, u64, u64) {
    let day = day + 719_468;
    let (era, of_era) = (day / 146_097, day % 146_097);
    let year = (of_era - of_era / 1_460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * month + 2) / 5 + 1, (month + 2) % 12 + 1);
    (era * 400 + year + u64::from(month <= 2), month, day)
}

pub(super) fn date_in_xml(millis: u64) -> String {
    let (seconds, millis) = (millis / 1_000, millis % 1_000);
    let ((year, month, day), of_day) = (civil(seconds / 86_400), seconds % 86_400);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{millis:03}Z")
}

pub(super) fn date_in_header(millis: u64) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = millis / 1_000;
    let ((year, month, day), of_day) = (civil(seconds / 86_400), seconds % 86_400);
    let (hour, minute, second) = (of_day / 3_600, of_day / 60 % 60, of_day % 60);
    let (weekday, month) = (DAYS[(seconds / 86_400 % 7) as usize], MONTHS[month as usize - 1]);
    format!("{weekday}, {day:02} {month} {year:04} {hour:02}:{minute:02}:{second:02} GMT")
}

pub(super) fn reason(status: u16) -> &'static str {
    match status {
        200 => "OK",
        204 => "No Content",
        206 => "Partial Content",
        301 => "Moved Permanently",
        400 => "Bad Request",
        403 => "Forbidden",
        404 => "Not Found",
        405 => "Method Not Allowed",
        408 => "Request Timeout",
        409 => "Conflict",
        412 => "Precondition Failed",
        416 => "Range Not Satisfiable",
        423 => "Locked",
        425 => "Too Early",
        429 => "Too Many Requests",
        500 => "Internal Server Error",
        501 => "Not Implemented",
        503 => "Service Unavailable",
        _ => "Unknown",
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn times_are_written_as_s3_writes_them() {
        // The last second of a leap day.
        let millis = 1_709_251_199_007;
        assert_eq!(date_in_xml(millis), "2024-02-29T23:59:59.007Z");
        assert_eq!(date_in_header(millis), "Thu, 29 Feb 2024 23:59:59 GMT");
        assert_eq!(date_in_header(0), "Thu, 01 Jan 1970 00:00:00 GMT");
    }

    #[test]
    fn what_is_escaped_is_read_as_it_was() {
        assert_eq!(unescape("a%2Fb%3D%"), "a/b=%");
    }
}
