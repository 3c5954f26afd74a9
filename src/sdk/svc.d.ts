/** The module "svc", which the code of a Workspace imports. */

// ---------------------------------------------------------------- Values

/**
 * The ID of a document, such as `messages_01JZ0000000000000000000000`: a string whose type names
 * its table, so that an ID of one table is not accepted as an ID of another.
 */
export type Id<Table extends string> = string & { readonly __table: Table }

/** A document as it is stored, with `_id`, `_createdAt` and `_revision`. */
export type Doc<Name extends TableName> = {
  // Mapped here, so that an editor shows the type by this name.
  [Key in keyof (SystemFields<Name> & FieldsOf<Name>)]: (SystemFields<Name> & FieldsOf<Name>)[Key]
}

/**
 * The fields of a document, the argument of `insert` and `replace`. A field with a default may be
 * left out.
 */
export type NewDoc<Name extends TableName> = {
  [Key in keyof NewFieldsOf<Name>]: NewFieldsOf<Name>[Key]
}

type FieldsOf<Name extends TableName> = Name extends keyof Tables
  ? TableFields<Tables[Name]>
  : never
type NewFieldsOf<Name extends TableName> = Name extends keyof Tables
  ? NewTableFields<Tables[Name]>
  : never

/** The names of the tables of this Workspace's schema. */
export type TableName = Register extends { readonly tables: infer Names extends string }
  ? Names
  : never

export interface SystemFields<Name extends string> {
  /** The ID that `insert` assigned. It never changes. */
  _id: Id<Name>
  /** Microseconds since the Unix epoch: the order of `scan`, and of equal keys in an index. */
  _createdAt: bigint
  /** The commit that wrote this version; 0n inside the Mutation that inserts the document. */
  _revision: bigint
}

/** The type of the values that a handler reads of a validator: `Infer<typeof message>`. */
export type Infer<V> =
  V extends Validator<infer T, unknown>
    ? T
    : V extends OptionalValidator<infer T, unknown>
      ? T | undefined
      : V extends DefaultedValidator<infer T, unknown>
        ? T
        : V extends Fields
          ? InferFields<V>
          : never

/** The type of the values that may be written, in which fields with a default may be left out. */
export type InferInput<V> =
  V extends Validator<unknown, infer Input>
    ? Input
    : V extends OptionalValidator<unknown, infer Input>
      ? Input | undefined
      : V extends DefaultedValidator<unknown, infer Input>
        ? Input | undefined
        : V extends Fields
          ? InputFields<V>
          : never

// ---------------------------------------------------------------- Validators

declare const validated: unique symbol
declare const input: unique symbol
declare const union: unique symbol
declare const optional: unique symbol
declare const defaulted: unique symbol

/**
 * A description of values, made with `v`: `T` is what a handler reads, `Input` what may be written,
 * in which fields with a default may be left out.
 */
export interface Validator<T, Input = T> {
  readonly [validated]: T
  readonly [input]: Input
}

/** A choice of several validators, made with `v.union`. */
export interface UnionValidator<T, Input = T> extends Validator<T, Input> {
  readonly [union]: true
}

/** A field that may be absent, made with `v.optional`. */
export interface OptionalValidator<T, Input = T> {
  readonly [optional]: T
  readonly [input]: Input
  /**
   * Gives the field a value where it is absent: `v.optional(v.int64()).default(3n)`. A handler
   * reads the field as present, with that value in documents and arguments that lack it. A write
   * may leave it out and then stores the default, so that a Release that requires the field reads
   * the document. Use it for a field that is added to a table with documents, or to arguments that
   * older applications do not send. A default has at most 8,192 characters of JSON; it can change
   * in a later Release, and documents that have the field keep their value.
   */
  default(value: NoInfer<Input>): DefaultedValidator<T, Input>
}

/** A field that has a default where it is absent, made with `v.optional(...).default(...)`. */
export interface DefaultedValidator<T, Input = T> {
  readonly [defaulted]: T
  readonly [input]: Input
}

/** Stands for a member that a later Release added to an open union. */
export interface UnknownMember {
  unknown: true
}

/** `{ name: validator }`, at most 1,024 fields. */
export interface Fields {
  readonly [name: string]:
    | Validator<unknown>
    | OptionalValidator<unknown>
    | DefaultedValidator<unknown>
}

/** Builders of validators. A value that does not fit reaches no handler and no table. */
export declare const v: {
  null(): Validator<null>
  boolean(): Validator<boolean>
  /** A signed whole number of 64 bits: a bigint, such as `5n`. */
  int64(bounds?: { minimum?: bigint; maximum?: bigint }): Validator<bigint>
  /** A finite number. */
  float64(bounds?: { minimum?: number; maximum?: number }): Validator<number>
  /**
   * A string. Lengths count characters (Unicode code points). The whole string must match
   * `pattern`, so that `/[a-z]+/` and `/^[a-z]+$/` mean the same. A pattern is read with the flag
   * `u`, and matching takes time linear in the string. It may have characters, `.`, classes, `\d`,
   * `\w`, `\s` and their opposites, groups, `|`, `^`, `$` and `* + ? {2} {2,} {2,5}`, but no
   * look-ahead, look-behind, back-reference, word boundary, named group, `\p{}` or other flag. It
   * has at most 512 characters, and 600 positions once its counted repetitions are expanded. The
   * pattern of a table that is served may be removed, but not changed.
   */
  string(bounds?: {
    minimumLength?: number
    maximumLength?: number
    pattern?: RegExp
  }): Validator<string>
  bytes(bounds?: { maximumLength?: number }): Validator<Uint8Array>
  /** Microseconds since the Unix epoch: a bigint, such as `ctx.now()` returns. */
  timestamp(): Validator<bigint>
  /** The ID of a document of one table, or of a stored file. It need not exist. */
  id<Name extends TableName | 'files'>(table: Name): Validator<Id<Name>>
  /** Exactly this value. */
  literal<const Value extends string | boolean | bigint>(value: Value): Validator<Value>
  array<T, Input = T>(
    items: Validator<T, Input>,
    bounds?: { maximumItems?: number },
  ): Validator<T[], Input[]>
  /** An object with these fields and no other. */
  object<F extends Fields>(fields: F): Validator<InferFields<F>, InputFields<F>>
  /** An object with any keys, whose values all fit one validator. */
  record<T, Input = T>(
    values: Validator<T, Input>,
    bounds?: { maximumItems?: number },
  ): Validator<{ [key: string]: T }, { [key: string]: Input }>
  /**
   * A value that fits at least one member. The first member that fits is used; one that needs no
   * default for it comes before one that does.
   */
  union<const Members extends readonly [Validator<unknown>, ...Validator<unknown>[]]>(
    ...members: Members
  ): UnionValidator<Infer<Members[number]>, InferInput<Members[number]>>
  /**
   * A union that later Releases may give more members. A value that no member accepts is read as
   * `{ unknown: true }`, where it would make a usual union fail, so that two Releases with
   * different members read the same documents. Handle that case as any other member:
   *
   *     status: v.open(v.union(v.literal('open'), v.literal('closed')))
   *     const text = typeof ticket.status === 'string' ? ticket.status : 'something new'
   *
   * Writing `{ unknown: true }` back where it was read keeps the stored value. An array, a record
   * and a member of a union with it inside are kept if they are written back unchanged; anywhere
   * else it is rejected. Arguments and results may have it as a value. No member may accept
   * `{ unknown: true }` itself, and no union has an open union as a member.
   */
  open<T, Input = T>(
    union: UnionValidator<T, Input>,
  ): Validator<T | UnknownMember, Input | UnknownMember>
  /**
   * A field that may be absent. Allowed directly in an object, in arguments and in a table. With
   * `.default(value)` a handler reads the field as present.
   */
  optional<T, Input = T>(inner: Validator<T, Input>): OptionalValidator<T, Input>
  /** The value, or null. */
  nullable<T, Input = T>(inner: Validator<T, Input>): Validator<T | null, Input | null>
  /** Any value that can be stored or sent. */
  any(): Validator<unknown>
  /** The grant that `ctx.storage.createUpload` makes, for `returns` of an Action. */
  uploadGrant(): Validator<UploadGrant>
  /** The grant that `ctx.storage.createDownload` makes, for `returns`. */
  downloadGrant(): Validator<DownloadGrant>
  /** The signed URL that `ctx.storage.createDownloadUrl` makes, for `returns`. */
  downloadUrl(): Validator<DownloadUrl>
  /** A request of another service, for the argument `delivery` of the handler of a hook. */
  httpDelivery(): Validator<HttpDelivery>
  /** A response of HTTP, for `returns` of a Function that a route of `http.ts` names. */
  httpResponse(): Validator<HttpResponse>
}

type InferFields<F extends Fields> = Flatten<
  {
    [Name in keyof F as F[Name] extends OptionalValidator<unknown> ? never : Name]: Infer<F[Name]>
  } & {
    [Name in keyof F as F[Name] extends OptionalValidator<unknown> ? Name : never]?: Infer<F[Name]>
  }
>

type InputFields<F extends Fields> = Flatten<
  {
    [Name in keyof F as F[Name] extends Validator<unknown> ? Name : never]: InferInput<F[Name]>
  } & {
    [Name in keyof F as F[Name] extends Validator<unknown> ? never : Name]?: InferInput<F[Name]>
  }
>

type None = Record<never, never>
type Flatten<T> = { [Key in keyof T]: T[Key] }

// ---------------------------------------------------------------- Schema

declare const cronTypes: unique symbol
declare const httpTypes: unique symbol
declare const hookTypes: unique symbol
declare const endpointTypes: unique symbol
declare const signatureTypes: unique symbol
declare const migrationTypes: unique symbol
declare const tableTypes: unique symbol
declare const schemaTypes: unique symbol

type Indexes = { readonly [name: string]: readonly string[] }

interface AnyTable<F, I extends Indexes> {
  readonly [tableTypes]: { readonly fields: F; readonly indexes: I }
}

/** A table of the schema, made with `table`. */
export interface Table<F extends Fields, I extends Indexes> extends AnyTable<F, I> {
  /**
   * Adds an index: it keeps the documents in the order of these fields, then in the order of their
   * creation. An index has at most 16 fields, a table at most 64 indexes.
   */
  index<const Name extends string, const Names extends FieldNames<F>>(
    name: Name,
    fields: Names,
  ): Table<F, I & { readonly [N in Name]: Names }>
  /**
   * Adds an index in which no two documents have equal fields; a write that would violate it
   * throws. Documents that lack one of the fields are not compared.
   */
  unique<const Name extends string, const Names extends FieldNames<F>>(
    name: Name,
    fields: Names,
  ): Table<F, I & { readonly [N in Name]: Names }>
}

type FieldNames<F> = readonly [keyof F & string, ...(keyof F & string)[]]
type TableFields<T> = T extends AnyTable<infer F extends Fields, Indexes> ? InferFields<F> : never
type NewTableFields<T> =
  T extends AnyTable<infer F extends Fields, Indexes> ? InputFields<F> : never
type TableIndexes<T> = T extends AnyTable<unknown, infer I> ? I : never

/** The default export of schema.ts. */
export interface Schema<T> {
  readonly [schemaTypes]: T
  /** The validator of a stored document, for `returns`. */
  document<Name extends keyof T & string>(
    table: Name,
  ): Validator<
    Flatten<SystemFields<Name> & TableFields<T[Name]>>,
    Flatten<SystemFields<Name> & NewTableFields<T[Name]>>
  >
}

export declare function table<F extends Fields>(fields: F): Table<F, None>
export declare function defineSchema<
  T extends { readonly [name: string]: AnyTable<Fields, Indexes> },
>(tables: T): Schema<T>

/** Describes this Workspace: `_generated` adds its schema and the names of its tables. */
export interface Register {
  readonly version: 1
}

type Tables = Register extends { readonly schema: Schema<infer T> } ? T : None

// ---------------------------------------------------------------- Functions

/** Kinds of Application Key: `public` for browsers and apps, `confidential` for backends. */
export type ClientKind = 'public' | 'confidential'

/** The meaning of a declared error for the caller: HTTP status 400, 403, 404 or 409. */
export type ErrorKind = 'invalid' | 'forbidden' | 'not_found' | 'conflict'

type Errors = { readonly [code: string]: ErrorKind }

interface InternalDefinition<Context, M extends AuthMode, A extends Fields, R> {
  /**
   * The identity that a caller must have. `none`, the default, accepts every caller and hides its
   * identity; `optional` accepts every caller and shows the identity of one that presents a token;
   * `guest`, `user` and `service` accept only callers of that kind. A called Function sees the
   * identity that the calling one has.
   */
  auth?: M
  /** The fields of the argument object; none by default. */
  arguments?: A
  /** The result; any value by default. A result that does not fit fails the call. */
  returns?: R
  handler: (ctx: Context, args: InferFields<A>) => Returned<R> | Promise<Returned<R>>
}

interface PublicDefinition<Context, M extends AuthMode, A extends Fields, R>
  extends InternalDefinition<Context, M, A, R> {
  /**
   * The kinds of Application Key that may call it. By default those in `"clients"` of svc.json, or
   * none.
   */
  clients?: readonly ClientKind[]
}

interface WithCompression {
  /**
   * False if responses with the result are never compressed. By default long results are, where the
   * client accepts it. The length of a compressed response tells a caller who decides a part of the
   * result, and sees how long responses to others are, what else the result contains: use it for a
   * Query whose result has a secret of the user beside text that others chose.
   */
  compress?: boolean
}

interface WithErrors<E extends Errors> {
  /**
   * Failures that the caller can act on, such as `{ CHANNEL_ARCHIVED: "conflict" }`. `ctx.fail`
   * throws one of them; the application receives its code with the prefix `APP_`.
   */
  errors?: E
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler without a result may await `patch`.
type Returned<R> = R extends Validator<unknown, infer T> ? (null extends T ? T | void : T) : unknown

type FunctionKind = 'query' | 'mutation' | 'action'

declare const functionKind: unique symbol

/** A Function. Its name is `<path below functions>.<export>`, such as `messages.list`. */
export interface FunctionDefinition<Kind extends FunctionKind> {
  readonly [functionKind]: Kind
}

/** Reads documents of one snapshot. Its result may be cached until one of them changes. */
export declare function query<
  const A extends Fields = None,
  R extends Validator<unknown> = Validator<unknown>,
  const E extends Errors = None,
  M extends AuthMode = 'none',
>(
  definition: PublicDefinition<QueryContext<keyof E & string, M>, M, A, R> &
    WithErrors<E> &
    WithCompression,
): FunctionDefinition<'query'>

/**
 * Reads and writes documents in one transaction: all of its writes are stored, or none. It runs
 * again when another Mutation changed what it read, so its handler must have no other effects.
 */
export declare function mutation<
  const A extends Fields = None,
  R extends Validator<unknown> = Validator<unknown>,
  const E extends Errors = None,
  M extends AuthMode = 'none',
>(
  definition: PublicDefinition<MutationContext<keyof E & string, M>, M, A, R> & WithErrors<E>,
): FunctionDefinition<'mutation'>

/** A Query that no application can call. */
export declare function internalQuery<
  const A extends Fields = None,
  R extends Validator<unknown> = Validator<unknown>,
  const E extends Errors = None,
  M extends AuthMode = 'none',
>(
  definition: InternalDefinition<QueryContext<keyof E & string, M>, M, A, R> & WithErrors<E>,
): FunctionDefinition<'query'>

/** A Mutation that no application can call. */
export declare function internalMutation<
  const A extends Fields = None,
  R extends Validator<unknown> = Validator<unknown>,
  const E extends Errors = None,
  M extends AuthMode = 'none',
>(
  definition: InternalDefinition<MutationContext<keyof E & string, M>, M, A, R> & WithErrors<E>,
): FunctionDefinition<'mutation'>

/**
 * The number of attempts of a scheduled Action. It may then have its effects more than once, so its
 * requests must be safe to repeat. Calls by applications are never repeated.
 */
interface WithRetry {
  retry?: {
    /** Number of attempts including the first one, 2 to 100. */
    maximumAttempts: number
    backoff: {
      /** Pause before the second attempt. */
      initial: Duration
      /** Each pause is the previous one times this; 2 by default. */
      factor?: number
      /** Longest pause, at most 1 day; 1 hour by default. */
      maximum?: Duration
    }
  }
}

/** The hosts, secrets and files that an Action names; it reaches no others. */
interface WithUses {
  uses?: {
    /**
     * Hosts that `fetch` may call, written as in a URL: "api.example.com", with the port unless it
     * is the default one; at most 64. The operator of the server must also allow an address that
     * is not public.
     */
    network?: readonly string[]
    /** Names of secrets of the Environment, such as "API_KEY"; at most 64. */
    secrets?: readonly string[]
    /** Access to stored files through `ctx.storage`; "write" includes "read". */
    storage?: 'read' | 'write'
  }
}

/**
 * Calls other services: it has `fetch`, timers and 10 minutes. It reads and writes documents by
 * calling Queries and Mutations, each of which is a transaction of its own. The server does not
 * retry it, and a failed call may have had effects.
 */
export declare function action<
  const A extends Fields = None,
  R extends Validator<unknown> = Validator<unknown>,
  const E extends Errors = None,
  M extends AuthMode = 'none',
>(
  definition: PublicDefinition<ActionContext<keyof E & string, M>, M, A, R> &
    WithErrors<E> &
    WithUses &
    WithRetry,
): FunctionDefinition<'action'>

/** An Action that no application can call. */
export declare function internalAction<
  const A extends Fields = None,
  R extends Validator<unknown> = Validator<unknown>,
  const E extends Errors = None,
  M extends AuthMode = 'none',
>(
  definition: InternalDefinition<ActionContext<keyof E & string, M>, M, A, R> &
    WithErrors<E> &
    WithUses &
    WithRetry,
): FunctionDefinition<'action'>

/** A reference to a Function of this Workspace, from `api` or `internal` of `_generated/api`. */
export interface FunctionReference<Kind extends FunctionKind, Arguments, Result> {
  readonly kind: Kind
  readonly types?: {
    readonly arguments: Arguments
    readonly result: Result
    readonly errorCode: string
  }
}

/**
 * Calls another Function of this Workspace and returns its result. Throws what that Function
 * throws; a declared error has its `code`, and the calling Function fails with that code unless it
 * catches the error. Calls nest at most 8 deep, and one invocation makes at most 4,096 of them.
 */
type Run<Kind extends FunctionKind> = <Arguments, Result>(
  reference: FunctionReference<Kind, Arguments, Result>,
  ...args: CallArguments<Arguments>
) => Promise<Result>

/**
 * The parameters of a call behind the reference: none where all arguments are optional. The types
 * of the arguments come from the reference alone.
 */
type CallArguments<Arguments> =
  Record<never, never> extends Arguments ? [args?: NoInfer<Arguments>] : [args: NoInfer<Arguments>]

interface DurationUnits {
  readonly milliseconds: number
  readonly seconds: number
  readonly minutes: number
  readonly hours: number
  readonly days: number
}

/** The sum of its units, of which at least one is given, up to 10 years. */
export type Duration = {
  [Unit in keyof DurationUnits]: Pick<DurationUnits, Unit> & Partial<DurationUnits>
}[keyof DurationUnits]

/** The ID of scheduled work: `sch_` and 26 characters. Store it with `v.string()`. */
export type ScheduledId = `sch_${string}`

export interface ScheduledWork {
  readonly id: ScheduledId
  /** Name of the Function, such as "messages.index". */
  readonly function: string
  /** A Mutation is pending until it has ended; only an Action is running. */
  readonly state: 'pending' | 'running' | 'succeeded' | 'failed' | 'canceled'
  /** Runs that were started. */
  readonly attempts: number
  /** Microseconds since the Unix epoch. */
  readonly dueAt: bigint
  readonly lastErrorCode: string | null
}

/**
 * Schedules calls of Mutations and Actions of this Workspace. They run in the Release that
 * scheduled them and have no identity: the Function needs `auth: "none"` or `"optional"`. A
 * Mutation runs exactly once, an Action at most once unless it declares `retry`. One call schedules
 * at most 1,024.
 */
export interface Scheduler {
  /** Schedules a call after a time and returns the ID of the work. */
  runAfter<Arguments>(
    delay: Duration,
    reference: FunctionReference<'mutation' | 'action', Arguments, unknown>,
    ...args: CallArguments<Arguments>
  ): Promise<ScheduledId>
  /** Schedules a call at a time, in microseconds since the Unix epoch as of `ctx.now()`. */
  runAt<Arguments>(
    micros: bigint,
    reference: FunctionReference<'mutation' | 'action', Arguments, unknown>,
    ...args: CallArguments<Arguments>
  ): Promise<ScheduledId>
  /** Cancels the work. Returns true only if that prevented the run. */
  cancel(id: ScheduledId): Promise<boolean>
  /** Returns the work, for 7 days after it has ended; null for an unknown ID. */
  get(id: ScheduledId): Promise<ScheduledWork | null>
}

/**
 * The times at which a Cron runs. An expression has five fields, minute, hour, day of month, month
 * and day of week: numbers, names, ranges, lists and steps, such as "0 7 * * mon-fri". If both days
 * are given, either is enough. An interval begins when the Cron comes into force.
 */
type CronTimes =
  | {
      schedule: string
      /** The zone of the IANA database in which the expression is read; "UTC" by default. */
      timeZone?: string
      every?: undefined
    }
  | { every: Duration; schedule?: undefined; timeZone?: undefined }

type CronArguments<Arguments> =
  Record<never, never> extends Arguments
    ? { arguments?: NoInfer<Arguments> }
    : { arguments: NoInfer<Arguments> }

export type Cron<Arguments> = CronTimes &
  CronArguments<Arguments> & {
    /** A Mutation or an Action that needs no identity. */
    function: FunctionReference<'mutation' | 'action', Arguments, unknown>
    /**
     * Skips a run that is due before the previous one has ended, or lets it wait. "skip" by
     * default.
     */
    overlap?: 'skip' | 'queue'
  }

export interface CronsDefinition {
  readonly [cronTypes]: true
}

/**
 * Declares the Crons of the Workspace by name. It is the default export of `crons.ts`. A Cron that
 * an operator disables stays disabled in later Releases.
 */
export declare function cronJobs<Crons>(
  crons: {
    readonly [Name in keyof Crons]: Cron<Crons[Name]>
  },
): CronsDefinition

/** A request of another service, as the handler of a hook gets it. */
export interface HttpDelivery {
  /** The ID of the scheduled work that handles it, which `svc scheduled list` shows. */
  id: string
  /** Microseconds since the Unix epoch. */
  receivedAt: bigint
  /** The method in upper case, such as "POST". */
  method: string
  /** The path below the mount, as it was sent: "/stripe". */
  path: string
  /**
   * Headers by name in lower case: `content-type`, those in which the service names the event, and
   * those that `headers` of the hook lists.
   */
  headers: { [name: string]: string }
  /** The first value of each parameter. */
  query: { [name: string]: string }
  /** The bytes that were signed. */
  body: Uint8Array
  /**
   * The body as JSON, in which every number is a `number`; absent where its content type is not
   * JSON, or where it cannot be a value. Narrow its type before use, as that of every input.
   */
  json?: unknown
}

/**
 * A response that a Function with `returns: v.httpResponse()` decides. What is outside of the rules
 * fails the call; the log names the part.
 */
export interface HttpResponse {
  /** 200 by default. A redirect has the header `location`. */
  status?: number
  /**
   * `cache-control`, `content-disposition`, `content-language`, `deprecation`, `etag`,
   * `last-modified`, `link`, `location`, `ratelimit`, `ratelimit-*`, `retry-after`, `sunset`,
   * `x-hook-secret`, `x-ratelimit-*`, `x-total-count`, and any that begins with `x-app-`.
   */
  headers?: { [name: string]: string }
  /**
   * A type of JSON, text, images, sound, video, archives or bytes; XML is a download. Pages and
   * scripts are not answered. By default that of the body.
   */
  contentType?: string
  /** Text or bytes. */
  body?: string | Uint8Array
  /** JSON, in place of `body`: a bigint beyond 2^53 becomes a string, bytes become base64url. */
  json?: unknown
}

/** A verification of requests, made with `signature`. */
export interface Signature {
  readonly [signatureTypes]: true
}

interface SignatureSecret {
  /**
   * The name of a secret of the Environment, such as "STRIPE_WEBHOOK"; the server alone reads it.
   * While one secret replaces another, its value may have up to 4 lines, each of which is accepted.
   */
  secret: string
}

interface SignatureTolerance {
  /** Seconds by which the signed time may differ, 1 to 3,600; 300 by default. */
  toleranceSeconds?: number
}

/** The ways in which services sign what they send. The server verifies the bytes as received. */
export declare const signature: {
  /** Standard Webhooks, as Svix, Resend, Clerk, Supabase and others send them. */
  standardWebhooks(options: SignatureSecret & SignatureTolerance): Signature
  /** The header `Stripe-Signature`. */
  stripe(options: SignatureSecret & SignatureTolerance): Signature
  /** The header `X-Hub-Signature-256` of GitHub. */
  github(options: SignatureSecret): Signature
  /** The header `X-Slack-Signature`. */
  slack(options: SignatureSecret & SignatureTolerance): Signature
  /** The header `X-Twilio-Signature`, over the `publicUrl` of the mount and the parameters. */
  twilio(options: SignatureSecret): Signature
  /** An HMAC of the body or, with `timestampHeader`, of the time, a full stop and the body. */
  hmac(
    options: SignatureSecret &
      SignatureTolerance & {
        /** The header with the digest. */
        header: string
        algorithm: 'sha1' | 'sha256' | 'sha512'
        encoding: 'base64' | 'hex'
        /** The text before the digest, such as "sha256=". */
        prefix?: string
        /** The header with the Unix time in seconds. */
        timestampHeader?: string
      },
  ): Signature
  /** A bearer token of a JWT provider of kind "service". It does not cover the body. */
  jwt(options: {
    /** The issuer of the provider. */
    issuer: string
    /** The exact subject; any by default. */
    subject?: string
  }): Signature
}

/** An inbox, made with `hook`. */
export interface Hook {
  readonly [hookTypes]: true
}

/**
 * Declares an inbox: a request that `verify` accepts is stored, answered with 202, and handled by
 * the Function as scheduled work. However often the service sends an event, a Mutation handles it
 * exactly once, and an Action at most once unless it declares `retry`.
 */
export declare function hook(definition: {
  /** The path below the mount: "/stripe", or with parameters "/shops/:shop". */
  path: string
  /** ["POST"] by default. */
  methods?: readonly ('DELETE' | 'GET' | 'PATCH' | 'POST' | 'PUT')[]
  /** Longest body, at most 524,288 bytes; 262,144 by default. */
  maximumBytes?: number
  /** Further headers that `delivery.headers` has, in lower case. */
  headers?: readonly string[]
  /** The verification; "none" accepts requests of everybody who knows the URL. */
  verify: Signature | 'none'
  /**
   * Returns the ID of the event, a text of 1 to 256 characters: deliveries with the same one are
   * handled once. It runs before the delivery is stored, has no `ctx`, and must return the same for
   * each repeat. Without it, deliveries with the same body are the same event.
   */
  once?: (delivery: Omit<HttpDelivery, 'id' | 'receivedAt'>) => string
  /**
   * "accepted", the default, answers with 202 once the delivery is stored. "result" waits for the
   * handler, at most 10 seconds, and answers with what it returns: as JSON, or as it says with
   * `returns: v.httpResponse()`. A handler that fails is answered with 500, and runs again when the
   * service sends the event again. Choose it only where the service reads the answer.
   */
  reply?: 'accepted' | 'result'
  /** An internal Mutation or Action whose arguments are `{ delivery: v.httpDelivery() }`. */
  handler: FunctionReference<'mutation' | 'action', { delivery: HttpDelivery }, unknown>
}): Hook

/** A small API of HTTP, made with `endpoint`. */
export interface Endpoint {
  readonly [endpointTypes]: true
}

/**
 * Declares a request that calls a Function and is answered with its result: 200 with the result as
 * JSON, or what a Function with `returns: v.httpResponse()` decides. Arguments come by name from
 * the path, the query and the JSON body. The request has no Application Key: everybody who knows
 * the URL may call the Function, with a bearer token where its `auth` requires an identity.
 */
export declare function endpoint(definition: {
  /** The path below the mount. Each parameter is an argument of the Function: "/orders/:id". */
  path: string
  /** GET is for Queries alone; it answers HEAD too. */
  methods: readonly ('DELETE' | 'GET' | 'PATCH' | 'POST' | 'PUT')[]
  /** Longest body, at most 2,097,152 bytes; 262,144 by default. */
  maximumBytes?: number
  /** Origins whose pages may call it, or "*" for those of all; none by default. */
  origins?: readonly string[] | '*'
  /** Any Function of this Workspace, also an internal one, which no key can call. */
  handler: FunctionReference<FunctionKind, unknown, unknown>
}): Endpoint

export interface HttpDefinition {
  readonly [httpTypes]: true
}

/**
 * Declares by name the requests of other services and programs that this Workspace handles. It is
 * the default export of `http.ts`. An operator mounts it with `svc http mount`:
 *
 *     export default httpRoutes({
 *       stripe: hook({
 *         path: '/stripe',
 *         verify: signature.stripe({ secret: 'STRIPE_WEBHOOK' }),
 *         once: (delivery) => (delivery.json as { id: string }).id,
 *         handler: internal.payments.onEvent,
 *       }),
 *     })
 */
export declare function httpRoutes(routes: {
  readonly [name: string]: Hook | Endpoint
}): HttpDefinition

/**
 * A stored document as a migration finds it: it may still lack what the schema requires, so each
 * field may be absent. Fields that the schema does not declare are hidden.
 */
export type UnmigratedDoc<Name extends TableName> = SystemFields<Name> & {
  [Key in keyof FieldsOf<Name>]?: FieldsOf<Name>[Key]
}

/** The `ctx` of a migration, which reads. Documents are read as they were before the batch. */
export interface MigrationContext {
  readonly db: DatabaseReader
  readonly config: Configuration
  readonly log: Log
  /** Returns the time of the batch, in microseconds since the Unix epoch. */
  now(): bigint
  /** Calls a Query of this Workspace as part of the batch. */
  readonly runQuery: Run<'query'>
}

/** The fields that a migration sets; those that are `undefined` are removed. */
export type MigrationPatch<Name extends TableName> = Partial<NewDoc<Name>>

export interface MigrationDefinition {
  readonly [migrationTypes]: true
}

/**
 * Declares a change of the stored documents of one table. An object of migrations by name, at most
 * 64, is the default export of `migrations.ts`; its export `requires` lists the names of those that
 * must be complete before this Release is bound to a Channel:
 *
 *     export default {
 *       addPriority: migration({
 *         table: 'tasks',
 *         each: (ctx, task) => (task.priority === undefined ? { priority: 'normal' } : null),
 *       }),
 *     }
 *     export const requires = ['addPriority']
 *
 * `svc migrations run addPriority` runs it on the server, beside the calls of applications. Each
 * document that exists when it starts is passed to `each` exactly once. A later Release has the
 * same migration if its name, table, index and the text of `each` are the same.
 */
export declare function migration<Name extends TableName>(definition: {
  /** A table of the schema. */
  table: Name
  /**
   * The index whose order the documents are passed in; by default the order of their creation. No
   * patch may set a field of it.
   */
  index?: IndexNames<Name>
  /** Most documents of one transaction, 1 to 500; 500 by default. */
  batch?: number
  /**
   * Returns the fields to set, or null to leave the document as it is. What it throws, and a patch
   * that the schema rejects, stops the migration at this document until an operator resumes it.
   */
  each: (
    ctx: MigrationContext,
    document: UnmigratedDoc<Name>,
  ) => MigrationPatch<Name> | null | Promise<MigrationPatch<Name> | null>
}): MigrationDefinition

/** The usage of a limit, and the limit. */
export interface Usage {
  readonly used: number
  readonly limit: number
}

/** Usage of the whole transaction, including the Functions that it called. */
export interface TransactionUsage {
  readonly documentsRead: Usage
  readonly bytesRead: Usage
  readonly documentsWritten: Usage
  readonly bytesWritten: Usage
  /** Calls of other Functions. */
  readonly calls: Usage
}

export interface ActionUsage {
  /** Calls of other Functions. */
  readonly calls: Usage
  /** Requests of `fetch`, and operations on files. */
  readonly requests: Usage
  readonly milliseconds: Usage
}

interface AnyContext<ErrorCode extends string, Mode extends AuthMode> {
  readonly auth: Auth<Mode>
  readonly config: Configuration
  readonly log: Log
  /**
   * Returns microseconds since the Unix epoch: in a Query and a Mutation the time of the call,
   * which stays the same, in an Action the current time.
   */
  now(): bigint
  /**
   * Ends the call with an error that it declares. Write `return ctx.fail("...")` or
   * `throw ctx.fail("...")`, so that TypeScript knows that no code after it runs.
   */
  readonly fail: (code: ErrorCode) => never
  /** Calls a Query: in an Action in a transaction of its own, elsewhere as part of this one. */
  readonly runQuery: Run<'query'>
}

/**
 * The `ctx` of a Query. `ErrorCode` is the union of the error codes that it declares, `Mode` its
 * `auth`; without them the type fits every Function.
 */
export interface QueryContext<ErrorCode extends string = never, Mode extends AuthMode = AuthMode>
  extends AnyContext<ErrorCode, Mode> {
  readonly db: DatabaseReader
  readonly storage: StorageReader & DownloadIssuer
  /** Returns what this call has used of its limits, so that a loop can stop before one. */
  usage(): Promise<TransactionUsage>
}

/** The `ctx` of a Mutation. It is also accepted where a QueryContext is expected. */
export interface MutationContext<ErrorCode extends string = never, Mode extends AuthMode = AuthMode>
  extends QueryContext<ErrorCode, Mode> {
  /** Downloads cannot be granted here: the result of a Mutation is stored, a grant must not be. */
  readonly storage: StorageReader & DownloadIssuer & StorageDeleter
  readonly auth: Auth<Mode> & GuestIssuer
  readonly db: DatabaseWriter
  /** Schedules calls in this transaction: they are made if it is committed. */
  readonly scheduler: Scheduler
  /** Calls a Mutation as part of this transaction. Its writes are rolled back if it throws. */
  readonly runMutation: Run<'mutation'>
}

/** The `ctx` of an Action. */
export interface ActionContext<ErrorCode extends string = never, Mode extends AuthMode = AuthMode>
  extends AnyContext<ErrorCode, Mode> {
  readonly auth: Auth<Mode> & GuestIssuer
  readonly config: Configuration & SecretReader
  /** Schedules calls at once, whether or not the Action succeeds. */
  readonly scheduler: Scheduler
  /** Stored files, with the access that `uses.storage` declares. */
  readonly storage: StorageReader & DownloadIssuer & StorageDeleter & StorageWriter
  /** Calls a Mutation in a transaction of its own: it is durable when the promise resolves. */
  readonly runMutation: Run<'mutation'>
  readonly runAction: Run<'action'>
  /** Returns what this call has used of its limits, so that a loop can stop before one. */
  usage(): Promise<ActionUsage>
}

// ---------------------------------------------------------------- Callers

/** The identity that a Function requires of its caller. */
export type AuthMode = 'none' | 'optional' | 'guest' | 'user' | 'service'

/**
 * The verified identity of a caller. It grants no access by itself: the Function checks whether
 * this caller may do what it requests.
 */
export type Identity = GuestIdentity | UserIdentity | ServiceIdentity

/** The identity of a guest, made by `issueGuest`. */
export interface GuestIdentity {
  readonly kind: 'guest'
  /** Unique for each guest, such as `gst_01JZ0000000000000000000000`. */
  readonly subject: string
  /** The ID of this Environment. */
  readonly issuer: string
}

/** The identity of a user, verified through an identity provider of the Environment. */
export interface UserIdentity extends ProvidedIdentity {
  readonly kind: 'user'
}

/** The identity of a program, verified through a provider of service identities. */
export interface ServiceIdentity extends ProvidedIdentity {
  readonly kind: 'service'
}

interface ProvidedIdentity {
  /** Unique among the callers of one issuer; two issuers may use the same one. */
  readonly subject: string
  readonly issuer: string
  /** Empty if the operator maps no claim to it. */
  readonly roles: readonly string[]
  /** The provider's claim; absent if there is none, or if the operator maps no claim to it. */
  readonly email?: string
}

interface Auths {
  none: { readonly identity: null }
  optional: {
    readonly identity: Identity | null
    /** The identity if it is of that kind, otherwise null. */
    readonly guest: GuestIdentity | null
    readonly user: UserIdentity | null
    readonly service: ServiceIdentity | null
  }
  guest: { readonly identity: GuestIdentity; readonly guest: GuestIdentity }
  user: { readonly identity: UserIdentity; readonly user: UserIdentity }
  service: { readonly identity: ServiceIdentity; readonly service: ServiceIdentity }
}

type Auth<Mode extends AuthMode> = Auths[Mode]

interface GuestIssuer {
  /**
   * Makes a guest and returns its bearer token, which the application presents as its functional
   * token: valid for at most 86,400 seconds. Never log or store it.
   */
  issueGuest(options: { expiresInSeconds: number }): Promise<string>
}

// ---------------------------------------------------------------- Configuration

/**
 * The variables and secrets that the operator set with `svc config set`. A call sees them as they
 * were when it started.
 */
export interface Configuration {
  /**
   * Returns the value of a variable, or null without one; it does not return secrets. A name has
   * upper-case letters, digits and _, such as "GREETING".
   */
  variable(name: string): Promise<string | null>
}

interface SecretReader {
  /**
   * Returns the value of a secret that `uses.secrets` of this Action names. Throws if it is not
   * named there or not set. Never log or store it.
   */
  secret(name: string): Promise<string>
}

// ---------------------------------------------------------------- Files

/** The metadata of a stored file. Its bytes and its metadata never change. */
export interface StoredFile {
  readonly _id: Id<'files'>
  readonly _createdAt: bigint
  readonly _revision: bigint
  /** The name of its bucket; "default" always exists. */
  readonly bucket: string
  /** The object key that names it in its bucket, or null. */
  readonly key: string | null
  readonly contentType: string
  readonly size: bigint
  /** 64 lowercase hexadecimal characters. */
  readonly sha256: string
  /** The ID of the grant that it was uploaded with, or null. */
  readonly uploadId: string | null
  /** The entity tag that S3 clients see, which is mostly the MD5; absent in files without one. */
  readonly etag?: string
  /** The headers that an S3 client stored with it, such as "x-amz-meta-..."; absent without any. */
  readonly headers?: { readonly [name: string]: string }
  /**
   * The sizes of the parts in which an S3 client uploaded it: "5242880x3,17" is three of 5 MiB and
   * one of 17 bytes. Absent in other files.
   */
  readonly partSizes?: string
  /** The multipart upload of an S3 client that it was completed from; absent in other files. */
  readonly multipartId?: string
  /** Base64 of the checksums that an S3 client sent, such as of "crc32"; absent without any. */
  readonly checksums?: { readonly [algorithm: string]: string }
}

interface StorageReader {
  /**
   * Returns the metadata of a file, or null if there is none. The ID of an upload grant (`upl_...`)
   * finds the file that was uploaded with it.
   */
  get(id: Id<'files'> | UploadId): Promise<StoredFile | null>
  /**
   * Returns `limit` files (1 to 1,000, by default 100) of a bucket after `cursor`, in the order of
   * their keys. With `prefix` only those whose key begins with it; without it also those that have
   * no key, which come first.
   */
  list(options?: {
    bucket?: string
    prefix?: string
    cursor?: string | null
    limit?: number
  }): Promise<Page<StoredFile>>
}

interface DownloadIssuer {
  /**
   * Makes a grant to download a file: `GET` of `path` on the application origin with the header
   * `Authorization: Bearer <token>`, as often as needed until it expires. It lives 300 seconds
   * unless `expiresInSeconds` (1 to 3,600) says otherwise; `fileName` is the name that a browser
   * saves the file under. A Query with a grant is cached for half of the grant's life at most.
   * Throws if there is no such file. Never log or store the token.
   */
  createDownload(
    id: Id<'files'>,
    options?: { expiresInSeconds?: number; fileName?: string },
  ): Promise<DownloadGrant>
  /**
   * Makes a signed URL of a file, for what sends no header: `<img>`, `<video>`, `<audio>`, links.
   * It is a credential: every client that has it reads the file until it expires, so never log or
   * store it. It lives 300 seconds unless `expiresInSeconds` (1 to 3,600) says otherwise, or up to
   * a quarter less: equal calls within a quarter get the same URL, so that a page does not load an
   * image again. A Query with one is cached for half of that life at most. With `inline`, a browser
   * that opens the URL shows PNG, JPEG, GIF, WebP, AVIF, BMP, and usual audio and video; it saves
   * files of every other type, SVG among them. `fileName` is the name that it saves the file under.
   * Throws if there is no such file. `downloadUrl` of `svc/client` makes the whole URL.
   */
  createDownloadUrl(
    id: Id<'files'>,
    options?: { expiresInSeconds?: number; fileName?: string; inline?: boolean },
  ): Promise<DownloadUrl>
}

interface StorageDeleter {
  /**
   * Deletes a file; in a Mutation as part of its transaction. Its bytes are removed within a
   * minute, unless another file has the same. Throws if there is no such file.
   */
  delete(id: Id<'files'>): Promise<void>
}

interface StorageWriter {
  /**
   * Makes a grant to upload one file with one `PUT` of `path`, which carries the header
   * `Authorization: Bearer <token>` and, if it has one, exactly this `Content-Type`. It lives 900
   * seconds unless `expiresInSeconds` (1 to 86,400) says otherwise; `maximumBytes` is at most
   * 5 GiB. An upload to a `key` replaces the file that has it. Never log or store the token.
   */
  createUpload(options: {
    bucket?: string
    key?: string | null
    contentType: string
    maximumBytes: number
    expiresInSeconds?: number
  }): Promise<UploadGrant>
  /** Stores at most 8 MiB as a file, which replaces the one that has the `key`. */
  put(
    bytes: Uint8Array,
    options: { bucket?: string; key?: string | null; contentType: string },
  ): Promise<Id<'files'>>
  /** Returns the bytes of a file of at most 16 MiB. Throws if there is no such file. */
  read(id: Id<'files'>): Promise<Uint8Array>
}

/** The ID of an upload grant. */
export type UploadId = string & { readonly __upload: true }

export interface DownloadUrl {
  /** Path on the application origin; a credential. */
  readonly path: string
  /** Microseconds since the Unix epoch. */
  readonly expiresAt: bigint
}

export interface DownloadGrant {
  /** Path on the application origin. */
  readonly path: string
  readonly token: string
  /** Microseconds since the Unix epoch. */
  readonly expiresAt: bigint
}

export interface UploadGrant extends DownloadGrant {
  readonly uploadId: UploadId
  readonly maximumBytes: number
}

// ---------------------------------------------------------------- Log

/**
 * Writes lines to the log of the Environment, at most 256 for each call and 4,096 characters in
 * each. Fields are shown beside the message, as `data`; leave secrets out.
 */
export interface Log {
  debug(message: string, fields?: { readonly [name: string]: unknown }): void
  info(message: string, fields?: { readonly [name: string]: unknown }): void
  warn(message: string, fields?: { readonly [name: string]: unknown }): void
  error(message: string, fields?: { readonly [name: string]: unknown }): void
}

// ---------------------------------------------------------------- Documents

export interface DatabaseReader {
  /** Returns the document, or null if there is none. */
  get<Name extends TableName>(id: Id<Name>): Promise<Doc<Name> | null>
  /** Returns the metadata of a stored file, or null if there is none. */
  get(id: Id<'files'>): Promise<StoredFile | null>
  /** Reads documents of one table, by an index or all of them. */
  table<Name extends TableName>(name: Name): TableReader<Name>
}

/**
 * Thrown by `insert`, `patch` and `replace` if another document has the same values in the fields
 * of a unique index, and by `runMutation` if the called Mutation does not catch it. The write is
 * not made, and the Mutation may continue. If no Function catches it, the application receives
 * 409 `UNIQUE_VIOLATION`.
 *
 *     try {
 *       await ctx.db.insert('users', { email })
 *     } catch (error) {
 *       if (error instanceof UniqueViolation && error.index === 'byEmail') return ctx.fail('TAKEN')
 *       throw error
 *     }
 */
export declare class UniqueViolation extends Error {
  private constructor()
  readonly name: 'UniqueViolation'
  /** Name of the table. */
  readonly table: TableName
  /** Name of the index. */
  readonly index: string
}

export interface DatabaseWriter extends DatabaseReader {
  /** Adds a document of at most 1 MiB and returns its ID. Throws a `UniqueViolation`. */
  insert<Name extends TableName>(table: Name, document: NewDoc<Name>): Promise<Id<Name>>
  /**
   * Sets the given fields; a field that is `undefined` is removed, or gets its default. Throws a
   * `UniqueViolation`, and if there is no such document.
   */
  patch<Name extends TableName>(id: Id<Name>, fields: Partial<NewDoc<Name>>): Promise<void>
  /**
   * Sets all fields; those that are not given are removed, or get their default. Throws a
   * `UniqueViolation`, and if there is no such document.
   */
  replace<Name extends TableName>(id: Id<Name>, document: NewDoc<Name>): Promise<void>
  /** Removes the document. Throws if there is no such document. */
  delete<Name extends TableName>(id: Id<Name>): Promise<void>
}

export interface TableReader<Name extends TableName> {
  /**
   * Returns documents in the order of an index. The range compares its fields from the first on,
   * each with `eq`, and may bound the next one:
   * `(q) => q.eq("channel", id).gte("_createdAt", since)`.
   */
  index<IndexName extends IndexNames<Name>>(
    name: IndexName,
    range?: (q: IndexRange<Doc<Name>, RangeFields<Name, IndexName>>) => IndexRangeEnd,
  ): Documents<Doc<Name>>
  /** Returns every document of the table, in the order of creation. */
  scan(): Documents<Doc<Name>>
}

type IndexNames<Name extends TableName> = Name extends keyof Tables
  ? keyof TableIndexes<Tables[Name]> & string
  : never
type RangeFields<Name, IndexName> = Name extends keyof Tables
  ? IndexName extends keyof TableIndexes<Tables[Name]>
    ? TableIndexes<Tables[Name]>[IndexName]
    : never
  : never

declare const range: unique symbol

/** A complete range of an index. */
export interface IndexRangeEnd {
  readonly [range]: true
}

/** A range whose next field can be compared with `eq`, or bounded once from each side. */
export type IndexRange<D, Names> = Names extends readonly [
  infer Next extends keyof D & string,
  ...infer Rest extends readonly string[],
]
  ? NextField<D, Next, Rest>
  : Names extends readonly []
    ? Bounds<'_createdAt', bigint>
    : never

interface NextField<D, Next extends keyof D & string, Rest extends readonly string[]>
  extends Bounds<Next, Exclude<D[Next], undefined>> {
  /**
   * Selects documents whose field has this value. `undefined` selects those that lack an optional
   * field; they precede all others, also those whose field is null.
   */
  eq(field: Next, value: D[Next]): IndexRange<D, Rest>
}

interface Bounds<Field, Value>
  extends LowerBound<Field, Value, UpperBound<Field, Value, IndexRangeEnd>>,
    UpperBound<Field, Value, LowerBound<Field, Value, IndexRangeEnd>> {}

interface LowerBound<Field, Value, Then> extends IndexRangeEnd {
  gt(field: Field, value: Value): Then
  gte(field: Field, value: Value): Then
}

interface UpperBound<Field, Value, Then> extends IndexRangeEnd {
  lt(field: Field, value: Value): Then
  lte(field: Field, value: Value): Then
}

/** Documents that are read with one of the methods and `await`, or with `for await`. */
export interface OrderedDocuments<D> extends AsyncIterable<D> {
  /** Returns the first `count` documents. */
  take(count: number): Promise<D[]>
  /** Returns the first document, or null. */
  first(): Promise<D | null>
  /** Returns the only document, or null. Throws if there is more than one. */
  unique(): Promise<D | null>
  /** Returns all documents: for small ranges. A call reads at most 32,768 documents or 16 MiB. */
  collect(): Promise<D[]>
  /**
   * Returns `limit` documents (1 to 1,024) after `cursor`, which is null for the first page. Pages
   * neither skip nor repeat a document, unless a field of the index changes meanwhile: then the
   * document moves to its new position, which may be after the cursor or before it.
   *
   * With `until`, the cursor of an earlier page, the page has all documents up to that cursor,
   * however many they are now, and `limit` is ignored. A client that subscribes to several pages
   * keeps the `cursor` that each page had at first and gives it as `until`, so that documents that
   * are added or removed neither open a gap between two pages nor appear in both. Such a page is
   * never the last one: `done` is false.
   */
  paginate(options: {
    cursor: string | null
    limit: number
    until?: string | null
  }): Promise<Page<D>>
}

export interface Documents<D> extends OrderedDocuments<D> {
  /** Sets the order; `asc` by default. */
  order(direction: 'asc' | 'desc'): OrderedDocuments<D>
}

export interface Page<D> {
  items: D[]
  /**
   * The cursor of the next page: an encrypted text of at most 4,096 characters that reveals nothing
   * of a document. It is accepted only for the same table, index fields and equalities, in this and
   * in other Functions; otherwise the call fails with `ARGUMENTS_INVALID`, unless the handler
   * catches that. It stays valid across restarts and Releases, and for at least a day after a
   * rotation of the keys.
   */
  cursor: string | null
  /** True if this is the last page. */
  done: boolean
}
