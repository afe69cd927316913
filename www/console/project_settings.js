// `/projects/<slug>/settings`: what is set for the project and its environments.

import { domains } from "./domains.js";
import { listing } from "./listing.js";
import { owner } from "./owner.js";
import { people } from "./people.js";
import { openTab } from "./project.js";
import { settings } from "./settings.js";
import { takedown } from "./takedown.js";
import { testTokens } from "./test_token.js";
import { variables } from "./variables.js";
import { webhook } from "./webhook.js";

openTab(settings, variables, domains, listing, testTokens, webhook, people, owner, takedown);
