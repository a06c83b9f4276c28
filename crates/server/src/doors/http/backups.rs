//! The handlers of `/v1/backups` and `/v1/backups/{id}`.

use std::time::Duration;

use axum::http::StatusCode;
use axum::response::Response;
use tickwheel_api::{BackupBody, Problem, no_body};
use tokio::time::timeout;

use crate::access::refusal::Refusal;
use crate::base::aside::aside;
use crate::doors::http::answer;
use crate::doors::http::call::Call;
use crate::doors::http::routes::handlers;
use crate::service::app::App;
use crate::service::backups::Begun;

handlers! {
    BeginBackup => begin,
    ListBackups => all,
    GetBackup => one,
    StopBackup => stop,
}

/// The longest wait for a stopped backup to end; it ends after its current piece.
const STOP_TIME: Duration = Duration::from_secs(5);

/// `POST` on the collection: begins a backup.
async fn begin(mut call: Call) -> Result<Response, Refusal> {
    call.read(no_body).await?;
    let backups = call.app().background.backups().clone();
    let body = match aside(move || backups.begin()).await?? {
        Begun::Now(body) => body,
        Begun::UnderWay(id) => return Err(Problem::backup_under_way(id).into()),
    };
    Ok(answer::begun(format!("/v1/backups/{}", body.id), &body))
}

/// `GET` on the collection: the newest backups, up to a limit.
async fn all(call: Call) -> Result<Response, Refusal> {
    let backups = call.app().background.backups().clone();
    let found = aside(move || backups.all()).await??;
    Ok(answer::json(StatusCode::OK, &found))
}

/// `GET`: the state of a backup.
async fn one(call: Call) -> Result<Response, Refusal> {
    Ok(answer::json(StatusCode::OK, &find(call.app(), &call.number()?).await?))
}

/// `DELETE`: stops a backup if it is running.
async fn stop(call: Call) -> Result<Response, Refusal> {
    let (app, id) = (call.app(), call.number()?);
    let found = find(app, &id).await?;
    if app.background.backups().stop(found.id) {
        // The answer says whether the backup has ended.
        let _late = timeout(STOP_TIME, app.background.backups().ended()).await;
    }
    Ok(answer::json(StatusCode::OK, &find(app, &id).await?))
}

async fn find(app: &App, id: &str) -> Result<BackupBody, Refusal> {
    let number = id.parse().ok().filter(|number: &u64| number.to_string() == id);
    let backups = app.background.backups().clone();
    let found = aside(move || backups.find(number)).await??;
    Ok(found.ok_or_else(|| Problem::no_backup(id))?)
}
