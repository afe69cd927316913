// The requests and responses of the project API, by method and path, for the type check of the
// console. `cargo xtask tidy` makes `api.generated.d.ts` from the description of the API.

import type { components, paths } from "./api.generated.d.ts";

/** The API's own types by their names. */
export type Schemas = components["schemas"];

/** A call's path, as it is written in a template string: without the values of its parameters. */
type Filled<Path extends string> = Path extends `${infer Before}{${string}}${infer After}`
  ? `${Before}${string}${Filled<After>}`
  : Path;

type WithoutQuery<Path extends string> = Path extends `${infer Before}?${string}` ? Before : Path;

/** The call of the API that is made by this method at this path; `never` if there is none. */
type Call<Method extends string, Path extends string> = Path extends string
  ? {
      [Known in keyof paths & string]: Filled<Known> extends Path
        ? Path extends Filled<Known>
          ? paths[Known][Lowercase<Method> & keyof paths[Known]]
          : never
        : never;
    }[keyof paths & string]
  : never;

type Json<Content> = Content extends { content: { "application/json": infer Value } }
  ? Value
  : never;

type AnswerOf<Called> = Called extends { responses: infer Responses }
  ? Json<Responses[(200 | 201) & keyof Responses]>
  : never;

type SentTo<Called> = Called extends { requestBody?: infer Request }
  ? [Request] extends [undefined]
    ? undefined
    : Json<Request>
  : never;

/** The response of a successful call. */
export type Answer<Method extends string, Path extends string> = AnswerOf<
  Call<Method, WithoutQuery<Path>>
>;

/** The body of a call's request; `undefined` if it has none. */
export type Sent<Method extends string, Path extends string> = SentTo<
  Call<Method, WithoutQuery<Path>>
>;

/** A path of the API with its parameters filled in, and maybe a query. */
export type ApiPath = Filled<keyof paths & string> | `${Filled<keyof paths & string>}?${string}`;

/** What a page knows about its player. */
export interface Player {
  sub: string;
  username: string;
  isGuest: boolean;
}
