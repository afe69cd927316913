// What the project API takes and answers, by method and path, for the type check of the console.
// `api.generated.d.ts` is made from the description of the API by `cargo xtask tidy`.

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

/** What a call answers where it succeeds. */
export type Answer<Method extends string, Path extends string> = AnswerOf<
  Call<Method, WithoutQuery<Path>>
>;

/** What a call takes as its body; nothing where it takes none. */
export type Sent<Method extends string, Path extends string> = SentTo<
  Call<Method, WithoutQuery<Path>>
>;

/** A path of the API with its parameters filled in, and maybe a query. */
export type ApiPath = Filled<keyof paths & string> | `${Filled<keyof paths & string>}?${string}`;

/** What a page knows of its player. */
export interface Player {
  sub: string;
  username: string;
  isGuest: boolean;
}
