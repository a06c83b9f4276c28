//! Pushes orders by webhook when they are due, to a receiver in the same program that verifies their signatures.
//!
//! ```sh
//! cargo run -p tickwheel-examples --bin push_webhook
//! ```
//!
//! There is no broker to start. The argument is the address of the receiver: `-- 127.0.0.1:9000`. Without it, the receiver takes a free port.

use std::sync::Arc;
use std::time::{Duration, SystemTime, UNIX_EPOCH};

use anyhow::{Context, Result};
use axum::Router;
use axum::body::Bytes;
use axum::extract::State;
use axum::http::{HeaderMap, StatusCode};
use axum::routing::post;
use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use ring::hmac;
use tickwheel_examples::pushed_orders::{Arrival, PushedOrders};
use tickwheel_push::guard::Guard;
use tickwheel_push::webhook::{
    AnswerRules, BodyForm, RequestPlan, SigningKey, SystemResolver, TlsPlan, Url, Webhook, WebhookPlan,
    new_secret,
};
use tokio::net::TcpListener;
use tokio::sync::mpsc;

#[tokio::main]
async fn main() -> Result<()> {
    let address = std::env::args().nth(1).unwrap_or_else(|| "127.0.0.1:0".to_owned());
    let listener = TcpListener::bind(&address).await;
    let listener = listener.with_context(|| format!("the receiver cannot listen on {address}"))?;
    let address = listener.local_addr()?;
    let orders = PushedOrders::open()?;

    // Both sides know the secret.
    let secret = new_secret()?;
    let (verified, mut arrivals) = mpsc::channel(16);
    let receiver = Receiver { secret: secret.as_str().into(), verified };
    let router = Router::new().route("/hooks/{queue}", post(receive)).with_state(receiver);
    tokio::spawn(async move { axum::serve(listener, router).await });

    let url = Url::parse(&format!("http://{address}/hooks/{{queue}}"))?;
    let webhook = Webhook::new(WebhookPlan {
        request: RequestPlan::new("POST", url, BodyForm::Payload, &[], None)?,
        signers: vec![SigningKey::parse(&secret)?.into()],
        rules: AnswerRules::default(),
        timeout: Duration::from_secs(10),
        connections_kept: 8,
        // A webhook leads to public addresses only, unless a place is open.
        guard: Arc::new(Guard::new(vec![address.to_string().parse()?])),
        resolver: Arc::new(SystemResolver),
        tls: TlsPlan::default().config()?,
    });
    orders.follow(webhook, async || arrivals.recv().await.context("the receiver has ended")).await
}

/// The other side.
#[derive(Clone)]
struct Receiver {
    secret: Arc<str>,
    verified: mpsc::Sender<Arrival>,
}

/// Answers a webhook.
async fn receive(State(receiver): State<Receiver>, headers: HeaderMap, body: Bytes) -> StatusCode {
    let header = |name: &str| headers.get(name).and_then(|value| value.to_str().ok()).unwrap_or_default();
    let [id, at, signatures] = ["webhook-id", "webhook-timestamp", "webhook-signature"].map(header);
    if !verify(&receiver.secret, id, at, signatures, &body) {
        return StatusCode::UNAUTHORIZED;
    }
    match receiver.verified.send(Arrival { id: id.to_owned(), payload: body.to_vec() }).await {
        Ok(()) => StatusCode::NO_CONTENT,
        Err(_) => StatusCode::SERVICE_UNAVAILABLE,
    }
}

/// Whether `body` was signed with the secret at most 5 minutes ago, as `docs/how-to/verify-webhooks.md` explains.
fn verify(secret: &str, id: &str, at: &str, signatures: &str, body: &[u8]) -> bool {
    let now = SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |now| now.as_secs());
    if !at.parse::<u64>().is_ok_and(|at| at.abs_diff(now) <= 300) {
        return false;
    }
    let Ok(key) = STANDARD.decode(secret.trim_start_matches("whsec_")) else { return false };
    let key = hmac::Key::new(hmac::HMAC_SHA256, &key);
    let signed = [format!("{id}.{at}.").as_bytes(), body].concat();
    let mut given = signatures.split(' ').filter_map(|one| STANDARD.decode(one.strip_prefix("v1,")?).ok());
    given.any(|given| hmac::verify(&key, &signed, &given).is_ok())
}
