//! `platform people`: who may do what with a project.

use http::{Method, Request, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use crate::args::{PeopleCommand, RoleName};
use crate::client::answer::Answer;
use crate::client::{empty, json as json_body};
use crate::clock;
use crate::failure::Failure;
use crate::session::{Bearer, Session};
use crate::terminal::{self, Line, STRONG};

/// The people of a project.
#[derive(Debug, Deserialize)]
struct People {
    people: Vec<Person>,
    /// Only a platform that asks the heir says this.
    #[serde(default)]
    handover: Option<Handover>,
}

/// The offer of a project to one of its developers.
#[derive(Debug, Deserialize)]
struct Handover {
    username: String,
    expires_at: String,
}

/// Somebody with a role.
#[derive(Debug, Deserialize)]
struct Person {
    sub: String,
    username: String,
    role: String,
    since: Option<String>,
}

/// What followed from a change of a member.
#[derive(Debug, Deserialize)]
struct Changed {
    /// An older platform does not say it.
    #[serde(default)]
    invitations_withdrawn: u32,
    #[serde(default)]
    left: Vec<String>,
}

impl Changed {
    /// Says which invitations were withdrawn, since the owner may have to send new ones, and what stays
    /// that the person has set.
    fn tell(&self) {
        match self.invitations_withdrawn {
            0 => {}
            1 => {
                terminal::note("One open invitation was withdrawn, because its link may be known.");
            }
            many => terminal::note(format_args!(
                "{many} open invitations were withdrawn, because their links may be known."
            )),
        }
        if !self.left.is_empty() {
            terminal::note(format_args!(
                "They had set: {}. It stays. Look in the project's settings whether the addresses are \
                 still yours.",
                self.left.join(", ")
            ));
        }
    }
}

/// The open invitations of a project.
#[derive(Debug, Deserialize)]
struct Invitations {
    invitations: Vec<Invitation>,
}

/// An open invitation.
#[derive(Debug, Deserialize)]
struct Invitation {
    id: String,
    role: String,
    expires_at: String,
}

/// A new invitation.
#[derive(Debug, Deserialize)]
struct Created {
    link: String,
    #[serde(flatten)]
    invitation: Invitation,
}

/// The project that the settings name.
struct Known {
    session: Session,
    slug: String,
    path: String,
    address: String,
}

impl Known {
    async fn look_up(context: &Context<'_>) -> Result<Self, Failure> {
        let settings = context.settings()?;
        let slug = settings.project()?.to_owned();
        let session = context.session(&settings)?;
        session.look_whose(&slug).await?;
        let path = format!("/api/projects/{slug}");
        let address = format!("{}{path}", settings.origin);
        Ok(Self {
            session,
            slug,
            path,
            address,
        })
    }

    /// Makes a call below the project's path.
    async fn call(
        &self,
        method: Method,
        what: &str,
        body: Option<&Value>,
    ) -> Result<Answer, Failure> {
        let address = format!("{}{what}", self.address);
        let call = self.session.ask(|| {
            let request = Request::builder().method(method.clone()).uri(&address);
            Ok(match body {
                Some(body) => (
                    request.header(header::CONTENT_TYPE, "application/json"),
                    json_body(body)?,
                ),
                None => (request, empty()),
            })
        });
        call.await
    }

    async fn get(&self, what: &str) -> Result<Answer, Failure> {
        self.session.get(&format!("{}{what}", self.path)).await
    }

    /// Returns the person with this name or id.
    async fn find(&self, wanted: &str) -> Result<Person, Failure> {
        let People { people, .. } = self.get("/people").await?.json()?;
        let mut people = people.into_iter();
        let found = people.find(|person| {
            person.sub == wanted || person.username.to_lowercase() == wanted.to_lowercase()
        });
        found.ok_or_else(|| {
            Failure::failed(format!(
                "Nobody with the name or the id {} is in the project {}: `platform people list` \
                 shows who is.",
                wanted, self.slug
            ))
        })
    }
}

/// Runs a command about the people of a project.
pub(super) async fn run(context: &Context<'_>, command: PeopleCommand) -> Result<(), Failure> {
    if matches!(
        command,
        PeopleCommand::HandOn { yes: false, .. } | PeopleCommand::TakeOn { yes: false }
    ) && !terminal::can_ask()
    {
        return Err(Failure::usage(
            "This gives a project another owner and needs a confirmation, but this is not an \
             interactive terminal: add --yes.",
        ));
    }
    let known = Known::look_up(context).await?;
    match command {
        PeopleCommand::List { json } => list(&known, json).await,
        PeopleCommand::Invite { role, json } => invite(&known, role, json).await,
        PeopleCommand::Invitations { json } => invitations(&known, json).await,
        PeopleCommand::Withdraw { id } => withdraw(&known, &id).await,
        PeopleCommand::Role { person, role } => change_role(&known, &person, role).await,
        PeopleCommand::Remove { person } => remove(&known, &person).await,
        PeopleCommand::Leave => leave(&known).await,
        PeopleCommand::HandOn { person, yes } => hand_on(&known, &person, yes).await,
        PeopleCommand::TakeOn { yes } => take_on(&known, yes).await,
        PeopleCommand::EndOffer => end_offer(&known).await,
    }
}

async fn list(known: &Known, json: bool) -> Result<(), Failure> {
    let answer = known.get("/people").await?;
    if json {
        return relay(answer);
    }
    let People { people, handover } = answer.json()?;
    if let Some(handover) = handover {
        terminal::note(format_args!(
            "{} is offered to {}, until {}.",
            known.slug,
            handover.username,
            terminal::moment(&handover.expires_at)
        ));
    }
    let mut rows = vec![["NAME", "ROLE", "SINCE"].map(str::to_owned)];
    rows.extend(people.iter().map(|person| {
        let since = person.since.as_deref().map(terminal::moment);
        let (name, role) = (person.username.clone(), person.role.clone());
        [name, role, since.unwrap_or_default()]
    }));
    terminal::print_all(&terminal::table(&rows, &[]))
}

/// Creates an invitation. Its link alone is the result, so that it can be piped into a message.
async fn invite(known: &Known, role: RoleName, json: bool) -> Result<(), Failure> {
    let body = json!({ "role": role.as_str() });
    let answer = known
        .call(Method::POST, "/invitations", Some(&body))
        .await?;
    if json {
        return relay(answer);
    }
    let Created { link, invitation } = answer.json()?;
    terminal::note(format_args!(
        "Whoever opens this link first joins {} as a {}, until {}. It is shown only now.",
        known.slug,
        invitation.role,
        terminal::to_the_minute(&invitation.expires_at)
    ));
    terminal::print(link)
}

async fn invitations(known: &Known, json: bool) -> Result<(), Failure> {
    let answer = known.get("/invitations").await?;
    if json {
        return relay(answer);
    }
    let Invitations { invitations } = answer.json()?;
    if invitations.is_empty() {
        terminal::note(format_args!("{} has no open invitations.", known.slug));
        return Ok(());
    }
    let mut rows = vec![["ID", "ROLE", "EXPIRES"].map(str::to_owned)];
    let now = clock::now();
    rows.extend(invitations.iter().map(|one| {
        let expires = terminal::when(&one.expires_at, now);
        [one.id.clone(), one.role.clone(), expires]
    }));
    terminal::print_all(&terminal::table(&rows, &[]))
}

async fn withdraw(known: &Known, id: &str) -> Result<(), Failure> {
    let Invitations { invitations } = known.get("/invitations").await?.json()?;
    let Some(found) = invitations.iter().find(|one| one.id == id) else {
        return Err(Failure::failed(format!(
            "{} has no open invitation with the id {}: `platform people invitations` shows them.",
            known.slug, id
        )));
    };
    let what = format!("/invitations/{}", found.id);
    known.call(Method::DELETE, &what, None).await?;
    terminal::note(format_args!("Withdrew the invitation to {}.", known.slug));
    Ok(())
}

async fn change_role(known: &Known, wanted: &str, role: RoleName) -> Result<(), Failure> {
    let person = known.find(wanted).await?;
    let what = format!("/people/{}", person.sub);
    let body = json!({ "role": role.as_str() });
    let changed = known.call(Method::PUT, &what, Some(&body)).await?;
    terminal::note(format_args!(
        "{} is a {} of {} now.",
        person.username,
        role.as_str(),
        known.slug
    ));
    changed.json::<Changed>()?.tell();
    Ok(())
}

async fn remove(known: &Known, wanted: &str) -> Result<(), Failure> {
    let person = known.find(wanted).await?;
    let what = format!("/people/{}", person.sub);
    let removed = known.call(Method::DELETE, &what, None).await?;
    terminal::note(format_args!(
        "{} is not in the project {} any more.",
        person.username, known.slug
    ));
    removed.json::<Changed>()?.tell();
    Ok(())
}

async fn leave(known: &Known) -> Result<(), Failure> {
    let token = known.session.token().await?;
    let bearer = Bearer::of(&token).ok_or_else(|| {
        Failure::failed("The platform's token cannot be read: this program may be too old for it.")
    })?;
    let what = format!("/people/{}", bearer.sub);
    known.call(Method::DELETE, &what, None).await?;
    terminal::note(format_args!("You left the project {}.", known.slug));
    Ok(())
}

async fn hand_on(known: &Known, wanted: &str, yes: bool) -> Result<(), Failure> {
    let person = known.find(wanted).await?;
    let name = &person.username;
    let question = Line::from("Offer the project ")
        .styled(STRONG, &known.slug)
        .push(format_args!(
            " to {name}? Once {name} accepts, {name} owns it, and you are a developer. Its deploy \
             tokens, its webhook and open invitations end then."
        ));
    if !yes && !terminal::ask(question) {
        return Err(Failure::failed("Nothing was offered."));
    }
    let body = json!({ "sub": person.sub });
    let answer = known.call(Method::PUT, "/handover", Some(&body)).await?;
    let Handover { expires_at, .. } = answer.json()?;
    terminal::note(format_args!(
        "{} is offered to {name}, who can accept it until {}, with `platform people take-on` or on the \
         project's page. Until then it stays yours; `platform people end-offer` withdraws the offer.",
        known.slug,
        terminal::moment(&expires_at)
    ));
    Ok(())
}

async fn take_on(known: &Known, yes: bool) -> Result<(), Failure> {
    let question = Line::from("Accept the project ")
        .styled(STRONG, &known.slug)
        .push(
            "? You own it then, and answer for its game. The owner of today is one of its developers. \
             Its deploy tokens, its webhook and open invitations end.",
        );
    if !yes && !terminal::ask(question) {
        return Err(Failure::failed("Nothing was accepted."));
    }
    known.call(Method::POST, "/handover/accept", None).await?;
    terminal::note(format_args!("{} belongs to you now.", known.slug));
    Ok(())
}

/// Whether this withdraws or declines the offer, the platform knows by who asks.
async fn end_offer(known: &Known) -> Result<(), Failure> {
    let answer = known.call(Method::DELETE, "/handover", None).await?;
    let Handover { username, .. } = answer.json()?;
    terminal::note(format_args!(
        "{} is not offered to {} any more.",
        known.slug, username
    ));
    Ok(())
}

/// Prints the platform's JSON on one line.
fn relay(answer: Answer) -> Result<(), Failure> {
    let value: Value = answer.json()?;
    terminal::print_json(&value)
}
