//! Export of spans to a collector, by the protocol of OpenTelemetry over HTTP.

use std::time::Duration;

use anyhow::{Context, Result, ensure};
use async_trait::async_trait;
use opentelemetry::trace::{
    Link, Span as _, SpanContext, SpanId, SpanKind, Status, TraceContextExt, TraceFlags, TraceId, TraceState,
    Tracer, TracerProvider,
};
use opentelemetry::{Context as Surroundings, KeyValue};
use opentelemetry_http::{Bytes, HttpClient, HttpError, Request, Response};
use opentelemetry_otlp::{SpanExporter, WithExportConfig, WithHttpConfig};
use opentelemetry_sdk::Resource;
use opentelemetry_sdk::trace::SdkTracerProvider;
use tickwheel_api::TraceContext;
use tickwheel_server::{Attribute, Span, SpanSink, events};
use ureq::Agent;

/// The longest time that a collector may take for a batch of spans.
const EXPORT_TIME_MAX: Duration = Duration::from_secs(10);
/// The longest time that a stopping server waits for the last spans to be sent.
const CLOSE_TIME_MAX: Duration = Duration::from_secs(5);

/// Sends spans in batches, in a thread of its own. If the collector is too slow, spans are dropped, so that no request waits for its
/// tracing.
pub(crate) struct Export(SdkTracerProvider);

impl Export {
    /// Sends the remaining spans.
    pub(crate) fn close(self) {
        if let Err(error) = self.0.shutdown_with_timeout(CLOSE_TIME_MAX) {
            tracing::warn!(event = events::SPANS_LOST, %error, "failed to send the last trace spans to the collector");
        }
    }
}

/// Checks that `url` can be the URL of a collector.
///
/// # Errors
/// The URL is not HTTP, or it has credentials or a query. The error text does not repeat a URL with credentials.
pub(crate) fn check(url: &str) -> Result<()> {
    let rest = url.split_once("://").map_or(url, |(_, rest)| rest);
    let host = rest.split(['/', '?', '#']).next().unwrap_or(rest);
    ensure!(
        !host.contains('@'),
        "--otlp-endpoint: the URL has a user or a password in it, which may end up in logs; leave them out, as in `https://{}`, and give the \
         collector's credentials in the variable OTEL_EXPORTER_OTLP_HEADERS, as in `authorization=Basic%20...`",
        host.rsplit('@').next().unwrap_or("collector:4318")
    );
    ensure!(
        !url.contains(['?', '#']),
        "--otlp-endpoint: the URL has a `?` or a `#` in it; give what the collector needs in the variable OTEL_EXPORTER_OTLP_HEADERS"
    );
    ensure!(
        url.starts_with("http://") || url.starts_with("https://"),
        "--otlp-endpoint: `{url}` begins neither with `http://` nor with `https://`"
    );
    Ok(())
}

/// Begins to send to the collector at this URL, such as `http://127.0.0.1:4318`. A collector that does not answer is noticed only when the
/// first spans are sent.
///
/// # Errors
/// The URL is not HTTP.
pub(crate) fn open(url: &str) -> Result<(SpanSink, Export)> {
    check(url)?;
    let url = format!("{}/v1/traces", url.trim_end_matches('/').trim_end_matches("/v1/traces"));
    let agent = Agent::config_builder().timeout_global(Some(EXPORT_TIME_MAX)).http_status_as_error(false);
    let exporter = SpanExporter::builder()
        .with_http()
        .with_http_client(Sender(agent.build().into()))
        .with_endpoint(url)
        .with_timeout(EXPORT_TIME_MAX)
        .build()
        .context("cannot send spans")?;
    let resource = Resource::builder()
        .with_service_name("tickwheel")
        .with_attribute(KeyValue::new("service.version", env!("CARGO_PKG_VERSION")))
        .build();
    let provider = SdkTracerProvider::builder().with_batch_exporter(exporter).with_resource(resource).build();
    let tracer = provider.tracer("tickwheel");
    let sink = SpanSink::new(move |span| {
        let begun = tracer
            .span_builder(span.name.clone())
            .with_kind(kind(&span))
            .with_start_time(span.begun)
            .with_attributes(span.attributes.iter().map(attribute))
            .with_links(span.link.as_ref().and_then(context).map(Link::with_context).into_iter().collect());
        let surroundings = match span.parent.as_ref().and_then(context) {
            Some(parent) => Surroundings::new().with_remote_span_context(parent),
            None => Surroundings::new(),
        };
        let mut told = begun.start_with_context(&tracer, &surroundings);
        if span.failed {
            told.set_status(Status::error(""));
        }
        told.end_with_timestamp(span.ended);
    });
    Ok((sink, Export(provider)))
}

fn kind(span: &Span) -> SpanKind {
    match span.kind {
        tickwheel_server::SpanKind::Server => SpanKind::Server,
        tickwheel_server::SpanKind::Consumer => SpanKind::Consumer,
    }
}

fn attribute((name, value): &(&'static str, Attribute)) -> KeyValue {
    match value {
        Attribute::Text(text) => KeyValue::new(*name, text.clone()),
        Attribute::Number(number) => KeyValue::new(*name, *number),
    }
}

/// Converts `00-TRACE-SPAN-FLAGS` to the SDK's type.
fn context(trace: &TraceContext) -> Option<SpanContext> {
    let mut parts = trace.traceparent.split('-').skip(1);
    let (id, span, flags) = (parts.next()?, parts.next()?, parts.next()?);
    let flags = TraceFlags::new(u8::from_str_radix(flags, 16).ok()?);
    let state: TraceState =
        trace.tracestate.as_deref().and_then(|state| state.parse().ok()).unwrap_or_default();
    Some(SpanContext::new(TraceId::from_hex(id).ok()?, SpanId::from_hex(span).ok()?, flags, true, state))
}

/// The HTTP client that the exporter uses. The exporter calls it on a thread that may block.
#[derive(Debug)]
struct Sender(Agent);

#[async_trait]
impl HttpClient for Sender {
    async fn send_bytes(&self, request: Request<Bytes>) -> Result<Response<Bytes>, HttpError> {
        let (parts, body) = request.into_parts();
        let answer = self.0.run(Request::from_parts(parts, &body[..]))?;
        let (parts, mut body) = answer.into_parts();
        Ok(Response::from_parts(parts, body.read_to_vec()?.into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_url_with_credentials_is_refused_and_not_repeated() {
        for bad in [
            "https://user:marker@collector:4318",
            "https://marker@collector",
            "user:marker@collector",
            "ftp://user:marker@collector/path",
            "https://collector/v1/traces?api-key=marker",
            "https://collector#marker",
        ] {
            let error = check(bad).expect_err(bad).to_string();
            assert!(!error.contains("marker"), "{error}");
            assert!(error.contains("OTEL_EXPORTER_OTLP_HEADERS"), "{error}");
        }
        check("https://collector:4318/path@1").expect("an @ behind the host is none of a user");
        check("http://127.0.0.1:4318").expect("a collector");
    }
}
