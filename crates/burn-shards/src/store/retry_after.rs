//! How long a server asks to wait, from the headers of its answer.

use std::time::{Duration, SystemTime};

/// The time to wait. `Retry-After` takes precedence over headers about rate limits. `None` if the answer has neither. `header` returns the
/// text of a header.
pub(super) fn retry_after<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let after = header("retry-after").and_then(|after| seconds(after).or_else(|| until(after.trim(), header("date"))));
    after.or_else(|| limited(header)).filter(|time| !time.is_zero())
}

/// A whole number of seconds, however large.
fn seconds(text: &str) -> Option<Duration> {
    let text = text.trim();
    let is_number = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    is_number.then(|| Duration::from_secs(text.parse().unwrap_or(u64::MAX)))
}

/// The time until a date. If the answer has the time, the server's clock is used, because this machine's clock may be wrong.
fn until(date: &str, now: Option<&str>) -> Option<Duration> {
    let at = httpdate::parse_http_date(date).ok()?;
    let now = now.and_then(|now| httpdate::parse_http_date(now).ok()).unwrap_or_else(SystemTime::now);
    Some(at.duration_since(now).unwrap_or_default())
}

/// When an exhausted rate limit resets: from `RateLimit: "name";r=0;t=55`, from the older `RateLimit: limit=9, remaining=0, reset=55`, or
/// from a separate header for each of these.
fn limited<'a>(header: impl Fn(&str) -> Option<&'a str>) -> Option<Duration> {
    let whole = header("ratelimit").unwrap_or_default();
    let of = |text: &str, left: &str, free: &str| {
        let of = |name: &str| text.split([';', ',']).find_map(|part| part.trim().strip_prefix(name)?.strip_prefix('='));
        of(left).is_some_and(|left| left.trim() == "0").then(|| seconds(of(free)?)).flatten()
    };
    let limits = whole.split(',').filter_map(|limit| of(limit, "r", "t"));
    let older = || of(whole, "remaining", "reset");
    let is_used_up = || whole.is_empty() && header("ratelimit-remaining").is_none_or(|left| left.trim() == "0");
    limits.max().or_else(older).or_else(|| seconds(header("ratelimit-reset").filter(|_| is_used_up())?))
}

#[cfg(test)]
mod tests {
    use super::*;

    fn asked(lines: &[(&str, &str)]) -> Option<u64> {
        let header = |name: &str| lines.iter().find(|(of, _)| *of == name).map(|(_, text)| *text);
        retry_after(header).map(|time| time.as_secs())
    }

    #[test]
    fn a_date_counts_by_the_clock_of_the_server() {
        let now = ("date", "Sun, 06 Nov 1994 08:49:37 GMT");
        for date in ["Sun, 06 Nov 1994 08:50:37 GMT", "Sunday, 06-Nov-94 08:50:37 GMT", "Sun Nov  6 08:50:37 1994"] {
            assert_eq!(asked(&[now, ("retry-after", date)]), Some(60), "{date}");
            assert_eq!(asked(&[("retry-after", date)]), None, "{date} is past");
        }
        assert_eq!(asked(&[now, ("retry-after", now.1)]), None);
        assert_eq!(asked(&[("date", "today"), ("retry-after", "Sun, 06 Nov 1994 08:50:37 GMT")]), None);
    }

    #[test]
    fn of_several_limits_the_longest_counts() {
        let limit = "ratelimit";
        assert_eq!(asked(&[(limit, "\"a\";r=0;t=5, \"b\";r=0;t=55;w=300,\"c\";r=1;t=99")]), Some(55));
        assert_eq!(asked(&[(limit, "\"a\"; r=0; t=5, \"b\";t=7;r=0")]), Some(7));
        assert_eq!(asked(&[(limit, "limit=9, remaining=0, reset=8")]), Some(8));
        assert_eq!(asked(&[("ratelimit-reset", "9"), ("ratelimit-remaining", "0")]), Some(9));
        assert_eq!(asked(&[("ratelimit-reset", "9"), ("ratelimit-remaining", "2")]), None);
        assert_eq!(asked(&[(limit, "\"a\";r=0;t=5"), ("retry-after", "2")]), Some(2));
        assert_eq!(asked(&[(limit, "\"a\";r=0;t=5"), ("retry-after", "0")]), None);
        assert_eq!(asked(&[(limit, "\"a\";r=0;t=5"), ("retry-after", "soon")]), Some(5));
        assert_eq!(asked(&[]), None);
    }

    #[test]
    fn a_number_may_be_of_any_length() {
        assert_eq!(asked(&[("retry-after", "18446744073709551615")]), Some(u64::MAX));
        assert_eq!(asked(&[("retry-after", "99999999999999999999999")]), Some(u64::MAX));
        for text in ["-1", "1e9", "+5", "5.5", "5 s", "soon", ""] {
            assert_eq!(asked(&[("retry-after", text)]), None, "{text}");
        }
    }
}
