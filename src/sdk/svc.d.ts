/** The module "svc": what the code of a Workspace is written with. */

// ---------------------------------------------------------------- Values

/**
 * The ID of a document, such as `messages_01JZ0000000000000000000000`: a string that remembers its
 * table, so that an ID of one table is not taken for an ID of another.
 */
export type Id<Table extends string> = string & { readonly __table: Table }

/** A document as it is stored, with `_id`, `_createdAt` and `_revision`. */
export type Doc<Name extends TableName> = Flatten<SystemFields<Name> & NewDoc<Name>>

/** The fields of a document, as `insert` and `replace` take them. */
export type NewDoc<Name extends TableName> = Name extends keyof Tables
  ? TableFields<Tables[Name]>
  : never

/** The names of the tables of this Workspace's schema. */
export type TableName = Register extends { readonly tables: infer Names extends string }
  ? Names
  : never

export interface SystemFields<Name extends string> {
  /** Given by `insert`; never changes. */
  _id: Id<Name>
  /** Microseconds since the Unix epoch: the order of `scan`, and of equals in an index. */
  _createdAt: bigint
  /** The commit that wrote this version; 0n inside the Mutation that inserts the document. */
  _revision: bigint
}

/** The type of the values that a validator accepts: `Infer<typeof message>`. */
export type Infer<V> =
  V extends Validator<infer T>
    ? T
    : V extends OptionalValidator<infer T>
      ? T | undefined
      : V extends Fields
        ? InferFields<V>
        : never

// ---------------------------------------------------------------- Validators

declare const validated: unique symbol
declare const optional: unique symbol

/** A description of values, made with `v`. */
export interface Validator<T> {
  readonly [validated]: T
}

/** A field that may be absent, made with `v.optional`. */
export interface OptionalValidator<T> {
  readonly [optional]: T
}

/** `{ name: validator }`, at most 1,024 fields. */
export interface Fields {
  readonly [name: string]: Validator<unknown> | OptionalValidator<unknown>
}

/** Builders of validators. What does not fit reaches neither a handler nor the database. */
export declare const v: {
  null(): Validator<null>
  boolean(): Validator<boolean>
  /** A whole number of 64 bits with sign: a bigint, such as `5n`. */
  int64(bounds?: { minimum?: bigint; maximum?: bigint }): Validator<bigint>
  /** A finite number. */
  float64(bounds?: { minimum?: number; maximum?: number }): Validator<number>
  /**
   * Lengths count characters (Unicode code points). The whole string must match `pattern`, so that
   * `/[a-z]+/` and `/^[a-z]+$/` mean the same. It is read as with the flag `u` and takes time
   * linear in the string: it may have characters, `.`, classes, `\d`, `\w`, `\s` and their
   * opposites, groups, `|`, `^`, `$` and `* + ? {2} {2,} {2,5}`, but neither look-ahead,
   * look-behind, back-references, word boundaries, names of groups, `\p{}` nor another flag. It has
   * at most 512 characters, and 600 places once its counted repetitions are written out. The
   * pattern of a table that is served may go away, but not change.
   */
  string(bounds?: {
    minimumLength?: number
    maximumLength?: number
    pattern?: RegExp
  }): Validator<string>
  bytes(bounds?: { maximumLength?: number }): Validator<Uint8Array>
  /** Microseconds since the Unix epoch: a bigint, as `ctx.now()` answers it. */
  timestamp(): Validator<bigint>
  /** The ID of a document of one table. The document need not exist. */
  id<Name extends TableName>(table: Name): Validator<Id<Name>>
  /** Exactly this value. */
  literal<const Value extends string | boolean | bigint>(value: Value): Validator<Value>
  array<T>(items: Validator<T>, bounds?: { maximumItems?: number }): Validator<T[]>
  /** An object with these fields and no other. */
  object<F extends Fields>(fields: F): Validator<InferFields<F>>
  /** An object with any keys, whose values are all of one kind. */
  record<T>(
    values: Validator<T>,
    bounds?: { maximumItems?: number },
  ): Validator<{ [key: string]: T }>
  /** A value that fits at least one member; the first one that fits decides. */
  union<const Members extends readonly [Validator<unknown>, ...Validator<unknown>[]]>(
    ...members: Members
  ): Validator<Infer<Members[number]>>
  /** A field that may be absent. Only directly in an object, in arguments or in a table. */
  optional<T>(inner: Validator<T>): OptionalValidator<T>
  /** The value, or null. */
  nullable<T>(inner: Validator<T>): Validator<T | null>
  /** Any value that can be stored or sent. */
  any(): Validator<unknown>
}

type InferFields<F extends Fields> = Flatten<
  { [Name in keyof F as F[Name] extends Validator<unknown> ? Name : never]: Infer<F[Name]> } & {
    [Name in keyof F as F[Name] extends Validator<unknown> ? never : Name]?: Infer<F[Name]>
  }
>

type None = Record<never, never>
type Flatten<T> = { [Key in keyof T]: T[Key] }

// ---------------------------------------------------------------- Schema

declare const tableTypes: unique symbol
declare const schemaTypes: unique symbol

type Indexes = { readonly [name: string]: readonly string[] }

interface AnyTable<F, I extends Indexes> {
  readonly [tableTypes]: { readonly fields: F; readonly indexes: I }
}

/** A table of the schema, made with `table`. */
export interface Table<F extends Fields, I extends Indexes> extends AnyTable<F, I> {
  /**
   * Keeps the documents in the order of these fields, then in the order of their creation: at most
   * 16 fields an index and 64 indexes a table.
   */
  index<const Name extends string, const Names extends FieldNames<F>>(
    name: Name,
    fields: Names,
  ): Table<F, I & { readonly [N in Name]: Names }>
  /**
   * An index in which no two documents have equal fields; a write that would break it throws.
   * Documents without one of the fields are not compared.
   */
  unique<const Name extends string, const Names extends FieldNames<F>>(
    name: Name,
    fields: Names,
  ): Table<F, I & { readonly [N in Name]: Names }>
}

type FieldNames<F> = readonly [keyof F & string, ...(keyof F & string)[]]
type TableFields<T> = T extends AnyTable<infer F extends Fields, Indexes> ? InferFields<F> : never
type TableIndexes<T> = T extends AnyTable<unknown, infer I> ? I : never

/** The default export of schema.ts. */
export interface Schema<T> {
  readonly [schemaTypes]: T
  /** The validator of a stored document, for `returns`. */
  document<Name extends keyof T & string>(
    table: Name,
  ): Validator<Flatten<SystemFields<Name> & TableFields<T[Name]>>>
}

export declare function table<F extends Fields>(fields: F): Table<F, None>
export declare function defineSchema<
  T extends { readonly [name: string]: AnyTable<Fields, Indexes> },
>(tables: T): Schema<T>

/** What `_generated` knows of this Workspace: it adds the schema and the names of the tables. */
export interface Register {
  readonly version: 1
}

type Tables = Register extends { readonly schema: Schema<infer T> } ? T : None

// ---------------------------------------------------------------- Functions

/** Kinds of Application Key: `public` for browsers and apps, `confidential` for backends. */
export type ClientKind = 'public' | 'confidential'

/** What an error that a Function declares means to its caller: HTTP 400, 403, 404 or 409. */
export type ErrorKind = 'invalid' | 'forbidden' | 'not_found' | 'conflict'

type Errors = { readonly [code: string]: ErrorKind }

interface InternalDefinition<Context, M extends AuthMode, A extends Fields, R> {
  /**
   * Who must call: `none` (by default) lets everybody call and sees nobody, `optional` everybody
   * and sees who presents a token, `guest`, `user` and `service` that kind of caller alone. A
   * Function that another one calls sees the caller of that one.
   */
  auth?: M
  /** The fields of the one argument object; none by default. */
  arguments?: A
  /** The result; any by default. What does not fit fails the call. */
  returns?: R
  handler: (ctx: Context, args: InferFields<A>) => Returned<R> | Promise<Returned<R>>
}

interface PublicDefinition<Context, M extends AuthMode, A extends Fields, R>
  extends InternalDefinition<Context, M, A, R> {
  /** Which Application Keys may call it; none by default. */
  clients?: readonly ClientKind[]
}

interface WithErrors<E extends Errors> {
  /**
   * Failures that a caller can act on, such as `{ CHANNEL_ARCHIVED: "conflict" }`. `ctx.fail`
   * throws one of them; the caller sees the code with `APP_` before it.
   */
  errors?: E
}

// biome-ignore lint/suspicious/noConfusingVoidType: a handler without a result may await `patch`.
type Returned<R> = R extends Validator<infer T> ? (null extends T ? T | void : T) : unknown

type FunctionKind = 'query' | 'mutation' | 'action'

declare const functionKind: unique symbol

/** A Function. Its name is `<path below functions>.<export>`, such as `messages.list`. */
export interface FunctionDefinition<Kind extends FunctionKind> {
  readonly [functionKind]: Kind
}

/** Reads documents as they are at one moment. Its result may be kept until one of them changes. */
export declare function query<
  const A extends Fields = None,
  R extends Validator<unknown> = Validator<unknown>,
  const E extends Errors = None,
  M extends AuthMode = 'none',
>(
  definition: PublicDefinition<QueryContext<keyof E & string, M>, M, A, R> & WithErrors<E>,
): FunctionDefinition<'query'>

/**
 * Reads and writes documents in one transaction: all of it happens, or nothing. It runs again when
 * another Mutation changed what it read, so its handler must have no other effects.
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

/** What an Action may reach: what it names, and nothing else. */
interface WithUses {
  uses?: {
    /**
     * Hosts that `fetch` may call, as they stand in a URL: "api.example.com", with the port where
     * it is not the usual one; at most 64. An address that is not public must also be allowed by
     * the operator of the server.
     */
    network?: readonly string[]
    /** Names of secrets of the Environment, such as "API_KEY"; at most 64. */
    secrets?: readonly string[]
  }
}

/**
 * Works with the world outside: it has `fetch`, timers and 10 minutes. It reads and writes
 * documents by calling Queries and Mutations, each of which is a transaction of its own. It is
 * never run again by itself, and a call that failed may have had effects.
 */
export declare function action<
  const A extends Fields = None,
  R extends Validator<unknown> = Validator<unknown>,
  const E extends Errors = None,
  M extends AuthMode = 'none',
>(
  definition: PublicDefinition<ActionContext<keyof E & string, M>, M, A, R> &
    WithErrors<E> &
    WithUses,
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
    WithUses,
): FunctionDefinition<'action'>

/** A Function of this Workspace, as `api` and `internal` of `_generated/api` hold it. */
export interface FunctionReference<Kind extends FunctionKind, Arguments, Result> {
  readonly kind: Kind
  readonly types?: {
    readonly arguments: Arguments
    readonly result: Result
    readonly errorCode: string
  }
}

/**
 * Calls another Function of this Workspace and answers its result. Throws what it throws; an error
 * that it declares has its `code`, and where nobody catches it the calling Function fails with it.
 * Calls nest 8 deep, and one invocation makes 4,096 of them.
 */
type Run<Kind extends FunctionKind> = <Arguments, Result>(
  reference: FunctionReference<Kind, Arguments, Result>,
  ...args: Record<never, never> extends Arguments ? [args?: Arguments] : [args: Arguments]
) => Promise<Result>

/** How much of a bound this call has used. */
export interface Usage {
  readonly used: number
  readonly limit: number
}

/** Of the whole transaction, with the Functions that it called. */
export interface TransactionUsage {
  readonly documentsRead: Usage
  readonly bytesRead: Usage
  readonly documentsWritten: Usage
  readonly bytesWritten: Usage
  /** Of other Functions. */
  readonly calls: Usage
}

export interface ActionUsage {
  /** Of other Functions. */
  readonly calls: Usage
  /** Of `fetch`. */
  readonly requests: Usage
  readonly milliseconds: Usage
}

interface AnyContext<ErrorCode extends string, Mode extends AuthMode> {
  readonly auth: Auth<Mode>
  readonly config: Configuration
  readonly log: Log
  /**
   * Microseconds since the Unix epoch. In a Query and a Mutation the time of the call, the same
   * wherever it is read; in an Action the time that it is.
   */
  now(): bigint
  /**
   * Ends the call with an error that it declares. Write `return ctx.fail("...")`, or `throw` before
   * it, so that TypeScript knows that nothing behind it runs.
   */
  readonly fail: (code: ErrorCode) => never
  /** In an Action each Query is a transaction of its own; elsewhere it is part of this one. */
  readonly runQuery: Run<'query'>
}

/**
 * What the handler of a Query works with. `ErrorCode` is the union of the codes it declares, `Mode`
 * its `auth`; without them it serves for every Function.
 */
export interface QueryContext<ErrorCode extends string = never, Mode extends AuthMode = AuthMode>
  extends AnyContext<ErrorCode, Mode> {
  readonly db: DatabaseReader
  /** What this call has used of its bounds, so that a loop can stop before it passes one. */
  usage(): Promise<TransactionUsage>
}

/** What the handler of a Mutation works with. It also serves where a QueryContext is expected. */
export interface MutationContext<ErrorCode extends string = never, Mode extends AuthMode = AuthMode>
  extends QueryContext<ErrorCode, Mode> {
  readonly auth: Auth<Mode> & GuestIssuer
  readonly db: DatabaseWriter
  /** Part of this transaction. What it wrote is undone where it throws. */
  readonly runMutation: Run<'mutation'>
}

/** What the handler of an Action works with. */
export interface ActionContext<ErrorCode extends string = never, Mode extends AuthMode = AuthMode>
  extends AnyContext<ErrorCode, Mode> {
  readonly auth: Auth<Mode> & GuestIssuer
  readonly config: Configuration & SecretReader
  /** A transaction of its own: it is stored, and stays so, when the promise resolves. */
  readonly runMutation: Run<'mutation'>
  readonly runAction: Run<'action'>
  usage(): Promise<ActionUsage>
}

// ---------------------------------------------------------------- Callers

/** What a Function asks of its caller. */
export type AuthMode = 'none' | 'optional' | 'guest' | 'user' | 'service'

/**
 * Who calls. It says who somebody is and nothing about what is theirs: whether a caller may do
 * what is asked is for the Function to check.
 */
export type Identity = GuestIdentity | UserIdentity | ServiceIdentity

/** Somebody whom `issueGuest` let in. */
export interface GuestIdentity {
  readonly kind: 'guest'
  /** Such as `gst_01JZ0000000000000000000000`: another one for each guest. */
  readonly subject: string
  /** The ID of this Environment. */
  readonly issuer: string
}

/** Somebody whom an identity provider of the Environment vouches for. */
export interface UserIdentity extends ProvidedIdentity {
  readonly kind: 'user'
}

/** A program whom a provider of service identities vouches for. */
export interface ServiceIdentity extends ProvidedIdentity {
  readonly kind: 'service'
}

interface ProvidedIdentity {
  /** Different for each caller of one issuer; two issuers may use the same. */
  readonly subject: string
  readonly issuer: string
  /** Empty where the operator maps no claim to it. */
  readonly roles: readonly string[]
  /** As the provider says it; absent where it does not, or where no claim is mapped to it. */
  readonly email?: string
}

interface Auths {
  none: { readonly identity: null }
  optional: {
    readonly identity: Identity | null
    /** The identity where it is of that kind, or null. */
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
   * Makes a guest and answers its bearer, which the application then presents as its functional
   * token: at most 86,400 seconds, and never to be logged or stored.
   */
  issueGuest(options: { expiresInSeconds: number }): Promise<string>
}

// ---------------------------------------------------------------- Configuration

/**
 * What the operator set with `svc config set`. A call sees it as it was when the call began, the
 * next one as it is then.
 */
export interface Configuration {
  /**
   * The value of a variable, or null where none has this name; a secret is no variable. Names have
   * upper-case letters, digits and _, such as "GREETING".
   */
  variable(name: string): Promise<string | null>
}

interface SecretReader {
  /**
   * The value of a secret that `uses.secrets` of this Action names. Throws where it is not named
   * there or not set. Never log or store it.
   */
  secret(name: string): Promise<string>
}

// ---------------------------------------------------------------- Log

/**
 * Lines in the log of the Environment, together at most 256 a call and 4,096 characters each.
 * Fields are shown beside the message, as `data`; leave secrets out.
 */
export interface Log {
  debug(message: string, fields?: { readonly [name: string]: unknown }): void
  info(message: string, fields?: { readonly [name: string]: unknown }): void
  warn(message: string, fields?: { readonly [name: string]: unknown }): void
  error(message: string, fields?: { readonly [name: string]: unknown }): void
}

// ---------------------------------------------------------------- Documents

export interface DatabaseReader {
  /** The document, or null where there is none. */
  get<Name extends TableName>(id: Id<Name>): Promise<Doc<Name> | null>
  /** Reads documents of one table, by an index or all of them. */
  table<Name extends TableName>(name: Name): TableReader<Name>
}

/**
 * Thrown by `insert`, `patch` and `replace` where another document has the same values in the
 * fields of a unique index, and by `runMutation` where the called Mutation does not catch it. The
 * write is not made, and the Mutation may go on. Where no Function catches it, the application is
 * answered 409 `UNIQUE_VIOLATION`.
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
  /** Adds a document, at most 1 MiB, and answers its ID. Throws a `UniqueViolation`. */
  insert<Name extends TableName>(table: Name, document: NewDoc<Name>): Promise<Id<Name>>
  /**
   * Sets the given fields; `undefined` removes one. Throws where there is no document, and a
   * `UniqueViolation`.
   */
  patch<Name extends TableName>(id: Id<Name>, fields: Partial<NewDoc<Name>>): Promise<void>
  /**
   * Sets all fields; those that are not given are removed. Throws where there is no document, and a
   * `UniqueViolation`.
   */
  replace<Name extends TableName>(id: Id<Name>, document: NewDoc<Name>): Promise<void>
  /** Throws where there is no document. */
  delete<Name extends TableName>(id: Id<Name>): Promise<void>
}

export interface TableReader<Name extends TableName> {
  /**
   * Documents in the order of an index. The range compares its fields from the first on, each with
   * `eq`, then perhaps bounds the next one: `(q) => q.eq("channel", id).gte("_createdAt", since)`.
   */
  index<IndexName extends IndexNames<Name>>(
    name: IndexName,
    range?: (q: IndexRange<Doc<Name>, RangeFields<Name, IndexName>>) => IndexRangeEnd,
  ): Documents<Doc<Name>>
  /** Every document of the table, in the order of creation. */
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

/** A range of an index that needs nothing more. */
export interface IndexRangeEnd {
  readonly [range]: true
}

/** The next field of the index can be compared, or bounded once from each side. */
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
   * Documents whose field has this value. `undefined` finds those without the field, where it is
   * optional; they come before all others, also before those whose field is null.
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

/** Documents to be read, with `await` by one of the methods or with `for await`. */
export interface OrderedDocuments<D> extends AsyncIterable<D> {
  /** The first `count` documents. */
  take(count: number): Promise<D[]>
  /** The first document, or null. */
  first(): Promise<D | null>
  /** The only document, or null. Throws where there is more than one. */
  unique(): Promise<D | null>
  /** All of them: for small ranges. A call reads at most 32,768 documents or 16 MiB. */
  collect(): Promise<D[]>
  /**
   * `limit` documents (1 to 1,024) behind `cursor`; null begins. Pages neither skip nor repeat a
   * document, unless a field of the index changes meanwhile: then the document moves to its new
   * place, which may lie behind the cursor or before it.
   */
  paginate(options: { cursor: string | null; limit: number }): Promise<Page<D>>
}

export interface Documents<D> extends OrderedDocuments<D> {
  /** `asc` by default. */
  order(direction: 'asc' | 'desc'): OrderedDocuments<D>
}

export interface Page<D> {
  items: D[]
  /**
   * For the next page: a sealed text of at most 4,096 characters that shows nothing of a document.
   * It opens for the same table, index fields and equalities alone, in this and in other Functions;
   * a call with another one fails with `ARGUMENTS_INVALID` where the handler does not catch it. It
   * stays good across restarts and Releases, and at least a day across a rotation of the keys.
   */
  cursor: string | null
  /** Whether nothing is left. */
  done: boolean
}
