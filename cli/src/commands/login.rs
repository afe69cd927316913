//! `platform login`: the device flow (RFC 8628). A code is shown here and
//! entered in any browser, on any device.

use std::time::Duration;

use super::Context;
use crate::browser;
use crate::client::Http;
use crate::client::oauth::{DeviceAuthorization, Grant, Metadata, Tokens};
use crate::clock::{now, pause};
use crate::credentials::Credentials;
use crate::failure::Failure;
use crate::session::{Bearer, entry_of};
use crate::terminal::{self, Line, STRONG};

/// RFC 8628 §3.5: how much `slow_down` adds to the interval.
const SLOW_DOWN: Duration = Duration::from_secs(5);
/// The shortest and the longest interval between two requests, in seconds.
const INTERVALS: (u64, u64) = (1, 60);
/// How many requests in a row may remain without a response.
const LOST_ANSWERS: u32 = 5;

/// Signs in.
pub(super) async fn run(context: &Context<'_>, no_browser: bool) -> Result<(), Failure> {
    let mut settings = context.settings()?;
    let mut http = context.http(&settings)?;
    let credentials = Credentials::locate(context.environment)?;
    let metadata = match http.metadata().await {
        Ok(metadata) => metadata,
        Err(failure) => {
            // The address may be that of a game or of the auth service.
            let platform = http.platform_of_address(failure).await?;
            terminal::note(format_args!("{} belongs to {platform}.", settings.origin));
            settings.origin = platform;
            http = context.http(&settings)?;
            http.metadata().await?
        }
    };
    let started = http.authorize_device(&metadata).await?;
    show(&started);
    if !no_browser && context.environment.shows_browser {
        let complete = started.verification_uri_complete.as_ref();
        browser::open(complete.unwrap_or(&started.verification_uri));
    }
    let command = settings.origin.login_command();
    let tokens = wait(&started, &command, || {
        http.redeem_device_code(&metadata, &started.device_code)
    })
    .await?;
    let bearer = Bearer::of(&tokens.access_token);
    let locked = credentials.lock(settings.timeout * 3).await?;
    let former = locked.look_up(&settings.origin)?;
    locked.sign_in(&settings.origin, entry_of(tokens, now()))?;
    drop(locked);
    if let Some(former) = former {
        end_former(&http, &metadata, &former.refresh_token).await;
    }
    let line = Line::from(format_args!("Signed in to {}", settings.origin));
    let line = match bearer {
        Some(bearer) => line.push(" as ").styled(STRONG, bearer.username),
        None => line,
    };
    terminal::note(line.push("."));
    if settings.token.is_some() {
        terminal::warn("PLATFORM_TOKEN is set and is used instead of this sign-in.");
    }
    Ok(())
}

/// Shows the address and the code before anything else is tried: the browser may be on another
/// machine.
fn show(started: &DeviceAuthorization) {
    let line = Line::from("Open ").styled(STRONG, &started.verification_uri);
    terminal::note(line.push(" in a browser, on this or any other device,"));
    terminal::note(Line::from("and enter the code ").styled(STRONG, &started.user_code));
    if let Some(complete) = &started.verification_uri_complete {
        terminal::note(format_args!(
            "or open this address, which contains the code: {complete}"
        ));
    }
    let minutes = started.expires_in.div_ceil(60);
    terminal::note(format_args!("Waiting, {minutes} minutes at most …"));
}

/// Repeats the request until the person has decided (RFC 8628 §3.4 and §3.5).
async fn wait<Asked>(
    started: &DeviceAuthorization,
    command: &str,
    mut ask: impl FnMut() -> Asked,
) -> Result<Tokens, Failure>
where
    Asked: Future<Output = Result<Grant, Failure>>,
{
    let mut interval = Duration::from_secs(started.interval.clamp(INTERVALS.0, INTERVALS.1));
    let asking = async {
        let mut lost = 0;
        loop {
            pause(interval).await;
            match ask().await {
                Ok(Grant::Given(tokens)) => return Ok(tokens),
                Ok(Grant::Refused(code, failure)) => {
                    lost = 0;
                    match code.as_str() {
                        "authorization_pending" => {}
                        "slow_down" => interval += SLOW_DOWN,
                        "access_denied" => return Err(denied(command)),
                        "expired_token" => return Err(expired(command)),
                        _ => return Err(failure),
                    }
                }
                // §3.5: after a lost connection requests are made less often. It is no reason to
                // give up while the person is typing.
                Err(failure) => {
                    lost += 1;
                    if lost == LOST_ANSWERS {
                        return Err(failure);
                    }
                    interval *= 2;
                }
            }
        }
    };
    tokio::time::timeout(Duration::from_secs(started.expires_in), asking)
        .await
        .unwrap_or_else(|_| Err(expired(command)))
}

fn denied(command: &str) -> Failure {
    Failure::failed(format!(
        "The sign-in was refused in the browser. Run {command} to try again."
    ))
}

fn expired(command: &str) -> Failure {
    Failure::failed(format!(
        "The code was not entered in time. Run {command} for a new one."
    ))
}

/// Revokes the sign-in that the new one replaces. A failure to do so is ignored.
async fn end_former(http: &Http, metadata: &Metadata, refresh_token: &crate::secret::Secret) {
    if http.revoke(metadata, refresh_token).await.is_err() {
        terminal::warn(
            "The previous sign-in could not be ended; you can end it on your profile page.",
        );
    }
}

#[cfg(test)]
mod tests {
    use std::cell::RefCell;
    use std::collections::VecDeque;

    use tokio::time::Instant;

    use super::*;
    use crate::secret::Secret;

    fn started(interval: u64) -> DeviceAuthorization {
        DeviceAuthorization {
            device_code: Secret::new("device"),
            user_code: "BCDF-GHJK".into(),
            verification_uri: "https://auth.games.example/device".into(),
            verification_uri_complete: None,
            expires_in: 900,
            interval,
        }
    }

    fn refused(code: &str) -> Result<Grant, Failure> {
        Ok(Grant::Refused(code.into(), Failure::failed("Refused.")))
    }

    fn given() -> Result<Grant, Failure> {
        Ok(Grant::Given(Tokens {
            access_token: Secret::new("a"),
            expires_in: 900,
            refresh_token: Secret::new("r"),
        }))
    }

    /// Waits with these responses. Returns the outcome and after how many seconds each request
    /// came.
    async fn ask_with(
        interval: u64,
        answers: Vec<Result<Grant, Failure>>,
    ) -> (Result<Tokens, Failure>, Vec<u64>) {
        let begun = Instant::now();
        let answers = RefCell::new(VecDeque::from(answers));
        let asked = RefCell::new(Vec::new());
        let outcome = wait(&started(interval), "`platform login`", || {
            asked.borrow_mut().push(begun.elapsed().as_secs());
            let answer = answers.borrow_mut().pop_front();
            async { answer.unwrap_or_else(|| refused("authorization_pending")) }
        })
        .await;
        (outcome, asked.into_inner())
    }

    fn sentence(outcome: Result<Tokens, Failure>) -> String {
        match outcome {
            Err(Failure::Told(told)) => told.sentence,
            other => panic!("{other:?}"),
        }
    }

    #[tokio::test(start_paused = true)]
    async fn slow_down_adds_five_seconds_for_good() {
        let answers = vec![
            refused("authorization_pending"),
            refused("slow_down"),
            refused("authorization_pending"),
            given(),
        ];
        let (outcome, asked) = ask_with(5, answers).await;
        assert!(outcome.is_ok());
        assert_eq!(asked, [5, 10, 20, 30]);
    }

    #[tokio::test(start_paused = true)]
    async fn a_refusal_and_an_expired_code_end_it() {
        let (outcome, _) = ask_with(5, vec![refused("access_denied")]).await;
        assert!(sentence(outcome).contains("refused in the browser"));
        let (outcome, _) = ask_with(5, vec![refused("expired_token")]).await;
        assert!(sentence(outcome).contains("not entered in time"));
        let (outcome, asked) = ask_with(5, vec![refused("invalid_client")]).await;
        assert_eq!((sentence(outcome).as_str(), asked.len()), ("Refused.", 1));
    }

    #[tokio::test(start_paused = true)]
    async fn nobody_is_waited_for_beyond_the_codes_life() {
        let (outcome, asked) = ask_with(60, Vec::new()).await;
        assert!(sentence(outcome).contains("not entered in time"));
        assert_eq!((asked.len(), asked.last()), (15, Some(&900)));
    }

    #[tokio::test(start_paused = true)]
    async fn a_lost_answer_is_waited_through_and_slows_down() {
        let lost = || Err(Failure::failed("Lost."));
        let (outcome, asked) = ask_with(5, vec![lost(), lost(), given()]).await;
        assert!(outcome.is_ok());
        assert_eq!(asked, [5, 15, 35]);
        let answers = (0..LOST_ANSWERS).map(|_| lost()).collect();
        let (outcome, _) = ask_with(5, answers).await;
        assert_eq!(sentence(outcome), "Lost.");
    }

    #[tokio::test(start_paused = true)]
    async fn no_server_can_make_it_ask_without_pause() {
        let (_, asked) = ask_with(0, vec![refused("authorization_pending"), given()]).await;
        assert_eq!(asked, [1, 2]);
    }
}
