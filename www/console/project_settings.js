// `/projects/<slug>/settings`: what is set for the project and its environments.

import { owner } from "./owner.js";
import { people } from "./people.js";
import { openTab } from "./project.js";
import { settings } from "./settings.js";
import { takedown } from "./takedown.js";
import { testTokens } from "./test_token.js";
import { variables } from "./variables.js";

openTab(settings, variables, testTokens, people, owner, takedown);
