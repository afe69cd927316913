//! The games with third-party engines are as a game developer would deploy them, including source
//! maps.

use platform_tests::npm;

#[tokio::test]
async fn each_game_is_a_page_that_loads_the_runtime_and_then_one_bundle() {
    let games = npm::games().await;
    for engine in ["excalibur", "phaser", "pixi"] {
        let game = games.join(engine);
        let mut files: Vec<String> = std::fs::read_dir(&game)
            .unwrap()
            .map(|file| file.unwrap().file_name().into_string().unwrap())
            .collect();
        files.sort();
        assert_eq!(files, ["game.js", "game.js.map", "index.html"], "{engine}");

        let page = std::fs::read_to_string(game.join("index.html")).unwrap();
        let scripts: Vec<&str> = page
            .lines()
            .map(str::trim)
            .filter(|line| line.contains("src=") || line.contains("<script"))
            .collect();
        assert_eq!(
            scripts,
            [
                r#"<script defer src="/__platform/runtime.js"></script>"#,
                r#"<script defer src="game.js"></script>"#,
            ],
            "{engine}"
        );
        let bundle = std::fs::read_to_string(game.join("game.js")).unwrap();
        assert!(bundle.len() > 100_000, "{engine} is not in its bundle");
    }
}
