//! `platform frames`: which sites may show the game in a frame.

use http::{Request, header};
use serde::Deserialize;
use serde_json::{Value, json};

use super::Context;
use super::backend::{agree, session};
use crate::args::{EnvironmentName, FramesCommand};
use crate::client::json as json_body;
use crate::failure::Failure;
use crate::terminal;

/// The frame setting of an environment. Older platforms do not send it.
#[derive(Debug, Deserialize)]
struct View {
    url: String,
    frame_ancestors: Option<Value>,
}

/// Shows or sets which sites may frame the game.
pub(super) async fn run(context: &Context<'_>, command: FramesCommand) -> Result<(), Failure> {
    match command {
        FramesCommand::Show { environment, json } => show(context, environment, json).await,
        FramesCommand::Set {
            allow,
            any,
            none,
            environment,
            yes,
        } => {
            let ancestors = match (any, none) {
                (true, _) => json!("any"),
                (_, true) => json!("platform"),
                _ => json!(allow),
            };
            set(context, environment, yes, &ancestors).await
        }
    }
}

async fn show(
    context: &Context<'_>,
    environment: EnvironmentName,
    json: bool,
) -> Result<(), Failure> {
    let (session, _, path) = session(context, environment).await?;
    let view: View = session.get(&path).await?.json()?;
    let ancestors = view.ancestors()?;
    if json {
        return terminal::print_json(ancestors);
    }
    terminal::print(sentence(&view.url, ancestors))
}

async fn set(
    context: &Context<'_>,
    environment: EnvironmentName,
    yes: bool,
    ancestors: &Value,
) -> Result<(), Failure> {
    let question = format!(
        "Change it so that {} may show the game in a frame?",
        who(ancestors)
    );
    agree(environment, yes, "frames", &question)?;
    let (session, origin, path) = session(context, environment).await?;
    let address = format!("{origin}{path}/frames");
    let wanted = json!({ "ancestors": ancestors });
    let answer = session
        .ask(|| {
            let request = Request::put(&address).header(header::CONTENT_TYPE, "application/json");
            Ok((request, json_body(&wanted)?))
        })
        .await?;
    let view: View = answer.json()?;
    let ancestors = view.ancestors()?;
    terminal::note(format_args!("{}", sentence(&view.url, ancestors)));
    Ok(())
}

impl View {
    /// The sites that may frame the game.
    fn ancestors(&self) -> Result<&Value, Failure> {
        self.frame_ancestors.as_ref().ok_or_else(|| {
            Failure::failed("This platform is too old to say who may show a game in a frame.")
        })
    }
}

/// The sites that may frame a game, as a part of a sentence.
fn who(ancestors: &Value) -> String {
    match ancestors {
        Value::String(word) if word == "any" => "every site".to_owned(),
        Value::Array(origins) => {
            let origins = origins.iter().filter_map(Value::as_str);
            let origins: Vec<&str> = origins.collect();
            format!("no site but {} and the platform", origins.join(", "))
        }
        _ => "no site but the platform".to_owned(),
    }
}

fn sentence(game: &str, ancestors: &Value) -> String {
    let mut who = who(ancestors);
    if let Some(first) = who.get_mut(..1) {
        first.make_ascii_uppercase();
    }
    format!("{who} may show {} in a frame.", game)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn it_is_said_who_may_show_a_game_in_a_frame() {
        let game = "https://rings.games.example";
        for (ancestors, said) in [
            (json!("any"), "Every site may show"),
            (json!("platform"), "No site but the platform may show"),
            (
                json!(["https://a.example", "https://b.example"]),
                "No site but https://a.example, https://b.example and the platform may show",
            ),
        ] {
            let told = sentence(game, &ancestors);
            assert_eq!(told, format!("{said} {game} in a frame."));
        }
    }
}
