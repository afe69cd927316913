// `/projects/<slug>/deployments`: what is deployed, and which pipelines may deploy.

import { deployTokens } from "./deploy_tokens.js";
import { deployments } from "./deployments.js";
import { previews } from "./previews.js";
import { openTab } from "./project.js";
import { undeployed } from "./undeployed.js";
import { upload } from "./upload.js";

openTab(undeployed, upload, deployments, previews, deployTokens);
