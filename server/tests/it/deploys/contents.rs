//! Files of the platform itself are unpacked like an archive.

use bytes::Bytes;
use platform_archive::staging::StagingError;
use platform_protocol::names::Environment;
use platform_server::domain::project::{Deployment, Project};
use platform_server::projects::deploy::{DeployError, Target};

use crate::support::{NOW, TestApp};

struct World(TestApp);

impl World {
    async fn with_project() -> Self {
        let app = TestApp::with(|config| config.demo = false).await;
        let project = Project {
            slug: "game".into(),
            owner: None,
            created_at: NOW,
        };
        let store = &app.running.state.platform.store;
        store.add_project(project).await.unwrap();
        Self(app)
    }

    async fn deploy(&self, slug: &str, files: &[(&str, &str)]) -> Result<Deployment, DeployError> {
        let content = |(path, text): &(&str, &str)| {
            let text = Bytes::copy_from_slice(text.as_bytes());
            ((*path).to_owned(), text)
        };
        let contents = files.iter().map(content).collect();
        let deployments = &self.0.running.state.projects.deployments;
        let target = Target::of_platform(slug, Environment::Prod);
        let deployed = deployments.deploy_contents(contents, &target).await;
        deployed.map(|published| published.deployment)
    }

    async fn shown(&self, environment: Environment) -> Option<Deployment> {
        let store = &self.0.running.state.platform.store;
        let shown = store.find_current_deployment("game", environment);
        shown.await.unwrap()
    }
}

#[tokio::test]
async fn a_deployment_is_shown_in_its_environment_alone() {
    let world = World::with_project().await;
    let files = [("index.html", "1"), ("a/b.js", "2")];
    let first = world.deploy("game", &files).await.unwrap();
    assert_eq!(world.shown(Environment::Prod).await, Some(first.clone()));
    assert_eq!(world.shown(Environment::Dev).await, None);
    let kept = &world.0.running.state.games.files;
    let content = kept.read(&first.files["a/b.js"], "game").await.unwrap();
    assert_eq!(content.as_ref(), b"2");
    let second = world.deploy("game", &[("index.html", "3")]).await.unwrap();
    assert_eq!(world.shown(Environment::Prod).await, Some(second));
}

#[tokio::test]
async fn one_bad_file_keeps_the_whole_deployment_out() {
    let world = World::with_project().await;
    let first = world.deploy("game", &[("index.html", "1")]).await.unwrap();
    for path in ["../x", "__platform/runtime.js"] {
        let files = [("index.html", "2"), (path, "3")];
        let refused = world.deploy("game", &files).await;
        assert!(
            matches!(
                refused,
                Err(DeployError::Staging(StagingError::Path { .. }))
            ),
            "{path}"
        );
    }
    assert_eq!(world.shown(Environment::Prod).await, Some(first));
    let kept = std::fs::read_dir(world.0.directory.path().join("files")).unwrap();
    let kept = kept.count();
    assert_eq!(kept, 1, "nothing of a refused deployment was kept");
}

#[tokio::test]
async fn a_file_that_cannot_be_kept_leaves_the_old_deployment() {
    let world = World::with_project().await;
    let first = world.deploy("game", &[("index.html", "1")]).await.unwrap();
    let files = world.0.directory.path().join("files");
    std::fs::remove_dir_all(&files).unwrap();
    std::fs::write(&files, "not a directory").unwrap();
    let failed = world.deploy("game", &[("index.html", "2")]).await;
    assert!(matches!(failed, Err(DeployError::Files(_))), "{failed:?}");
    assert_eq!(world.shown(Environment::Prod).await, Some(first));
}

#[tokio::test]
async fn an_unknown_project_and_an_empty_deployment_are_refused() {
    let world = World::with_project().await;
    let unknown = world.deploy("other", &[("index.html", "1")]).await;
    assert!(matches!(unknown, Err(DeployError::UnknownProject(slug)) if slug == "other"));
    assert!(matches!(
        world.deploy("game", &[]).await,
        Err(DeployError::Staging(StagingError::Empty))
    ));
}
