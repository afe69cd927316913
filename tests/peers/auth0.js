// A sign-in client that is made as its documentation begins. It asks for no token.
import { Auth0Client } from "@auth0/auth0-spa-js";

new Auth0Client({ domain: "auth.localhost", clientId: "game" });
