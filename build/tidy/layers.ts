/** The order of the folders inside the large folders of src. */

/** The folders and files directly inside a folder by name, lowest first, each with its contents. */
export type Layers = Readonly<Record<string, string>>

/**
 * The inside of folders of src, by their path below src: each row may import only the rows before
 * it, types included, so that a reader can stop at any layer. These are also the tables in those
 * README.md files that have the mark `layers`.
 */
export const LAYERS: Readonly<Record<string, Layers>> = {
  runner: {
    protocol:
      'the frames of both directions and the operations in them, with the checks of those that a ' +
      'runner sends',
    kernel:
      'what server and runner ask the kernel: CPU clocks, counts of a process, and the memory in ' +
      'which a runner says which call it executes',
    realm:
      'the code inside the realm; `entry.ts` is bundled into `realm.generated.ts` by ' +
      '`build/embed-realm.ts`',
    sandbox:
      'the restrictions of the kernel (Landlock, seccomp, privileges, Seatbelt) and ' +
      'the self-tests',
    'command.ts': 'the commands that start a runner, and that it re-executes itself with',
    'frame-sockets.ts': 'the end of the server of the socket that carries the frames',
    'processes.ts': 'the side of the server: starts the process, encodes and decodes its frames',
    'realm-source.ts': 'the script that a realm is made with: captured globals around the bundle',
    'rejections.ts': 'has the runtime report unhandled rejections without an event loop',
    'host.ts':
      'loads a Release into a realm; runs each frame with all its microtasks, and measures its ' +
      'CPU time',
    'main.ts': 'the loop of the process: reads with blocking calls, never enters an event loop',
  },
  'runner/realm': {
    'limits.ts': 'the limits that the Release of the realm was loaded with',
    'bridge.ts': 'the functions of the process that the realm may call',
    isolation: 'freezes what calls share, and restores what cannot be frozen',
    'logging.ts': 'the log lines of a call',
    'missing-globals.ts': 'what authors use in place of globals that a realm does not have',
    'random-stream.ts': 'the random numbers of a call, from its seed',
    'workspace-script.ts': 'the script of a Release, and the globals that it gets as parameters',
    'migrations.ts': 'the code of migrations, as a Function of a batch of documents',
    'workspace.ts': 'the definitions of the Workspace',
    'decoding.ts': 'Stored JSON to values',
    'documents.ts': 'the documents that the server sent, and those kept for later calls',
    'calls.ts': 'the calls in flight, and the one that runs',
    'watched-promise.ts': 'promises of writes, which tell whether code observes them',
    'pipelining.ts': 'operations that are sent without a wait for their replies',
    'operations.ts': 'sends operations, or pipelines them',
    'rows.ts': 'lists of documents, which become range operations',
    'encoding.ts': 'values to Stored JSON',
    'endings.ts': 'the end of a call: one frame, and its removal; placeholders, which end one',
    'replies.ts': 'the replies of the server to operations',
    'error-reports.ts': 'an error of the author as a frame: message, location and stack',
    'unhandled-rejections.ts': 'reports promises that are rejected and not handled',
    globals: 'the globals of every Function: clock, randomness, console, text, URLs',
    web: 'the globals that only Actions can use in full: fetch, bodies, timers',
    'environment.ts': 'the set of globals that the code of a Workspace has',
    ctx: 'what a handler finds in `ctx`',
    'handlers.ts': 'runs a handler with its `ctx` and arguments',
    'dispatch.ts': 'processes the frames of the server',
    'entry.ts': 'makes the realm; the entry of the bundle',
    'realm.generated.ts': 'the bundle as text',
  },
  documents: {
    'column-values.ts': 'values of columns that both databases store in the same form',
    'key-encoding.ts': 'values as byte strings whose order is the order of the values',
    'compact-ids.ts': 'IDs and index keys as both databases store them: the bytes of ULIDs',
    'store.ts': 'the port between the engine and its documents',
    'store-loader.ts': 'the port by which a restore fills an empty store',
    'store-faults.ts': 'faults that both stores raise',
    'operation-ids.ts':
      'a filter for operation IDs that cannot have a record, so that most Mutations need no lookup',
    'keys.ts':
      'index keys (the fields, then creation time and ID as the trailer) and the intervals that ' +
      'range reads scan. A key has at most 2,560 bytes in both stores',
    'index-rows.ts':
      'physical indexes: one per table and field list, shared by all Releases that declare it; ' +
      '`building`, `ready` or `dropped`',
    'compact-texts.ts': 'texts of documents as both databases store them: codes for field names',
    'newest-versions.ts':
      'an in-memory cache of the newest versions, which is always current since this process ' +
      'makes every commit, or receives the IDs of its documents',
    'range-walk.ts': 'reads a range in pages',
    'store-state.ts': 'the state in memory of both stores: status, sequences, cache and filter',
    'followed-documents.ts':
      'the store of a process that only reads, and follows the commits of the one that writes',
    'index-sample.ts': 'compares a bounded sample of each index with the documents',
    postgres:
      'the PostgreSQL schema `svc_documents`: reads, writer, epochs (`terms.ts`) and migrations',
    sqlite: 'the SQLite file: reads, writer thread, batches, pragmas and migrations',
  },
  storage: {
    'files.ts': 'checks of the files of a root: one owner, no access of others',
    'artifacts.ts': 'content-addressed files of Releases',
    'keyring.ts': 'keys of a root, and the keys that are derived from them for each use',
    'keyring-files.ts': 'reads and replaces the keyring file',
    'cursors.ts': 'sealed cursors of lists',
    'sealing.ts': 'sealed secrets',
    'lock.ts': 'the lock by which one process owns a root',
    'migrations.generated.ts': 'migrations of the control database',
    control: 'the control database: one file of statements for each noun',
    'root.ts': 'opens a root: lock, control database, artifacts',
    'upgrades.ts': 'the backup that was made before the last upgrade',
    restores: 'what a restore has read of a backup, and the control database that it writes',
    blobs: 'the bytes of stored files: on disk, in memory, in an S3-compatible store',
    logs: 'the hot store of log records, its writer thread, and the archive of its segments',
  },
  engine: {
    'limits.ts': 'all bounds of calls, transactions and runners',
    calls:
      'what every layer says about a call: outcomes of runners, errors of operations, results ' +
      'and their documents, the configuration, texts of limits',
    speculation:
      'which calls are speculative, the documents that are prefetched for them, and which ' +
      'Queries receive placeholders instead',
    commits:
      'committer with group commit, write log for conflict detection, key locks, pending ' +
      'commits, pinned and held snapshots, retention',
    'query-cache': 'cached results of Queries and the index of their read sets',
    tables:
      'tables of Releases and of the server, with their indexes and projections; reads of ' +
      'stored documents',
    releases: 'preparation of a Release: compiled validators, checks with them, calls in flight',
    transactions:
      'snapshot reads, write buffer with savepoints, unique indexes, bounds of one attempt',
    runners: 'the pool of runner processes: start, containment, limits, attribution of failures',
    usage: 'resource usage per Function, and the health of runners and documents',
    files: 'documents of files and upload grants, and transactions of the server itself',
    'scheduled-work': 'the documents of scheduled work, and the operations of `ctx.scheduler`',
    invocations:
      'the life of one call: attempts, operations, nested calls, result, log; Queries (single ' +
      'flight) and Mutations (idempotency, reruns)',
    actions: 'Actions: calls of other Functions, outgoing requests, files, timers',
    admission: 'bounds the calls in flight, waits for the prepared Release',
    inbox: 'requests of other services, which become scheduled work once for each event',
    scheduling: 'runs scheduled work: dispatch when due, Crons, recovery after a crash, history',
    migrations:
      'runs migrations of stored documents in batches, each a transaction with its progress; ' +
      'pauses, resumes and cancels them; dry runs',
    subscriptions:
      'watched Queries: one run a commit for all subscriptions of a Query, states in ' +
      'commit order',
    administration: 'documents as operators read, write and import them',
    'engine.ts': 'the interface of the engine',
    'engine-metrics.ts': 'the current figures of an engine as metrics',
    'measured-engine.ts': 'an engine that counts and measures its calls',
    'create-engine.ts': 'the wiring',
    'create-reading-engine.ts':
      'the wiring in an application process: Queries and subscriptions alone',
  },
  product: {
    'resource-faults.ts': 'faults about Releases, Channels and other resources, for operators',
    'application-faults.ts': 'the codes under which applications see failures of the storage',
    audit: 'audit records: an outbox in the control database, delivered to the identity database',
    'ports.ts': 'the ports that rules share, and a Release in memory',
    'targets.ts': 'targets as text: the parser, and the Release that an operator names',
    idempotency:
      'a change with an Operation ID is applied once; its record commits with the change',
    'functional-tokens':
      'the identity that a call acts for: guest tokens, and JWTs of the providers',
    logs: 'pages of the log, the stream that follows it, redaction of secrets',
    'application-clients':
      'applications and their keys; the look-up of a key, which every call makes',
    configuration: 'variables and secrets, and the snapshot of them that running Functions read',
    buckets:
      'buckets and storage keys: what operators change, what a bucket admits, the ' +
      'look-up of a key',
    files:
      'stored files: grants, uploads, downloads, multipart uploads, quotas, objects of ' +
      'operators, removal of unused bytes',
    schedules: 'scheduled work: lists and cancellations',
    compatibility:
      'whether two schemas may serve side by side (`comparison`), and whether the stored ' +
      'documents fit one (`stored-documents.ts`)',
    releases:
      'validation, retirement and the cache of loaded Releases; removal of unused ' +
      'artifacts and indexes',
    migrations:
      'migrations of stored documents: their actions and dry runs, and those that a ' +
      'Release requires',
    backups: 'backups that operators ask for: their start, the list, the archive of one',
    crons: 'Crons: which are in force, their activation, manual runs',
    serving:
      'the serving policy, the Releases that Channels and the policy serve, and the ' +
      'targets of calls',
    'http-mounts':
      'mounts of the routes of a Workspace, their deliveries, and signatures of other services',
    environments: 'desired and observed state, archive and restore, rotation of keys, the status',
    channels: 'promotion and rollback',
    workspaces: 'publication, the check without a publication, and saves of developers',
    'data-admin': 'documents, as operators read and write them',
    invocations: 'Functions that operators run',
    'product.ts': 'makes the parts of one Environment',
    'followed-product.ts': 'makes the parts that an application process has',
  },
  client: {
    'visible-text.ts': 'text of servers and files, escaped for the terminal',
    'sizes.ts': 'sizes as people write and read them',
    'local-names.ts': 'names of local files that keys of objects become',
    'timestamps.ts': 'times of responses as text for people',
    'validator-text.ts': 'types of validators as text for people',
    'explanations.ts': 'what a failure reports beyond its code, such as the next step',
    'usage.ts': 'the failure of a command line that cannot be run as it was typed',
    'files.ts': 'files that the client reads and creates, with failures that name the path',
    'secret-files.ts': 'a new file for a secret, which exists before the secret is requested',
    'pauses.ts': 'a wait that an interrupt ends',
    'environment.ts': 'the interface to the process: variables, terminal, network, signals',
    'origins.ts': 'origins of servers as text',
    'output.ts': 'one result on stdout, progress and failures on stderr',
    network:
      'connections, proxies, `fetch` over `node:http`, WebSockets, lists that are read page ' +
      'by page',
    requests: 'operations as requests; attempts, deadlines and bounds of a request',
    development:
      'the interface of the tools that only the executable has, and the events of `svc dev`',
    'contexts.ts': 'the context of a running command, and the declaration of a command',
    'secret-variables.ts': 'secrets in environment variables',
    'command-line': 'the parser of the command line, and the help',
    sessions: 'the stored session, its lock, its renewal, and logins',
    provenance: 'the source of a publication: the commit, the run of a pipeline',
    roots: 'roots, their links, and the server that a command talks to',
    upgrade:
      'signed releases: how one is verified, unpacked and put in place, and the services that ' +
      'run the server',
    'packages.ts': 'packages from a file or a build',
    oidc:
      'a login in the browser: the address that the provider redirects to, and the exchange ' +
      'of its code',
    mcp:
      'the door of agents: tools from the table of operations, resources, permissions, and the ' +
      'derived session',
    console:
      'the loopback server of `svc console`: its checks, its derived sessions, and the ' +
      'operations that its page may use',
    imports:
      'exports of other backends as a schema, JSON lines and files: archives, types of values, ' +
      'names, reports, and an adapter for each format',
    'docs-site': 'the loopback server of `svc docs --serve`',
    'request-commands.ts':
      'the declaration of a command that sends one request and prints its response',
    commands: 'one file for each command or noun; a noun with several files has a folder',
    'process-environment.ts': 'the environment of the process',
    'main.ts': 'the list of commands; runs a command line',
  },
  dev: {
    workspace:
      'the files of a Workspace: how they are found, read and written, and the ' +
      'problems that their author reads',
    codegen: 'the generated code: types, references, shapes of arguments',
    'type-check':
      'the process that checks types, the compiler that it finds, mistakes that types ' +
      'cannot express',
    clients: 'what a page or another application imports: references, `svc/client`, `svc/react`',
    testing: 'the link of `_generated` as the package `svc`, so that test runners find it',
    configuration: '`.env.local`: variables and secrets of the local Environment',
    watching: 'which files belong to a Workspace, and which of them changed',
    building:
      'the build: bundle, forbidden syntax, description, package, and the commands ' +
      'that write files',
    saves:
      'the loop from a change to an update: one at a time, and what to say where one is rejected',
    copies:
      '`svc dev --from`: documents of a backup, redacted, as the begin of a root, and its files',
    local:
      '`svc dev`: one Environment on loopback addresses, its keys, its reports, its ' +
      'management routes',
    attached: '`svc dev --attach`: synchronizes into the Environment of a server',
    backups: '`svc backup verify`: reads a backup as a restore does',
    'test-host':
      'environments of `svc/test`: the engine over a temporary file, with simulated time',
    'new-workspaces.ts': 'new Workspaces from templates',
    'workspace-tools.ts': 'the interface for the client',
  },
  http: {
    'media-types.ts': 'content negotiation by the Accept header',
    'front-page.ts': 'the page at `/` for browsers',
    'parameters.ts': 'path parameters, and paths as Hono takes them',
    'probes.ts': 'responses of the probes for liveness and readiness',
    'provenance.ts': 'the header that declares the origin of a package',
    'request-counts.ts': 'counts and durations of requests',
    'request-traces.ts': 'the spans of requests',
    'errors.ts': 'failures as responses, with the codes of each origin',
    'token-buckets.ts': 'token buckets of one process, and those that processes share',
    'rate-limits.ts': 'the limits of both origins',
    'authentication-attempts.ts': 'limits on failed authentication of operators',
    'rejection-log.ts': 'one bounded log record for a rejected request',
    transfers:
      'response bodies at the rate of the peer, budgets of memory and downloads, the minimum rate',
    'content-codings.ts': 'content negotiation by the Accept-Encoding header',
    'bodies.ts': 'request bodies within bounds of size, memory and time',
    'ranges.ts': 'conditions and ranges of downloads',
    'file-answers.ts': 'responses with the bytes of a stored file',
    application: 'the application origin: calls, Realtime, files, S3, development keys',
    management: 'the management origin: the steps of a request, one file of handlers for each noun',
    openapi: 'the OpenAPI document of both origins',
  },
  'http/application': {
    'parsed-queries.ts': 'keeps parsed Queries whose text arrives again',
    'call-envelopes.ts': 'parses the envelopes of calls',
    'browser-origins.ts': 'allowed browser origins',
    'development-targets.ts': 'targets of authors, and messages for them',
    'sockets.ts': 'the port of WebSockets',
    'url-queries.ts': 'the query of the few URLs that have one',
    functions: 'paths, plain forms and OpenAPI documents of Functions',
    'incoming.ts': 'the state of a request',
    'key-usage.ts': 'counts the uses of keys',
    'gateway.ts': 'the parts of the server that the origin uses',
    'callers.ts': 'authenticates keys and tokens',
    'operation-callers.ts': 'the caller that an operation belongs to',
    'exchanges.ts': 'first and last steps of every exchange',
    'calls.ts': 'a call with its body, parsed in turn',
    'call-admission.ts': 'target, Function, policy and identity of a call',
    'recorded-outcomes.ts': 'recorded outcomes of exact repeats',
    'invoke.ts': 'handlers of Query, Mutation and Action',
    'plain-calls.ts': 'calls of Functions by name, in plain JSON',
    'functions-document.ts': 'the handler of the OpenAPI document of Functions',
    files: 'uploads and downloads with grants',
    development: 'saves with development keys',
    mounts: 'what all requests below a mount share',
    hooks: 'requests of other services below a mount',
    'routes.ts': 'every route as data',
    endpoints: 'calls of programs below a mount',
    'mounted-requests.ts': 'finds the route of a request below a mount',
    'methods.ts': 'methods and headers of each path, for preflights',
    realtime: 'subscriptions over WebSockets',
    s3: 'the S3-compatible API',
    'mount.ts': 'the origin as one fetch function',
  },
  'http/application/s3': {
    'errors.ts': 'codes of S3',
    xml: 'strict reader, escaping writer',
    'error-responses.ts': 'a failure as XML',
    'requests.ts': 'parses URLs',
    'checksums.ts': 'checksums of the protocol',
    signature: 'Signature Version 4 and the caller',
    bodies: 'decodes and checks bodies',
    operations: 'one file for each group of operations',
    's3-api.ts': 'answers one request',
  },
}

/** Folders that may not import each other, although one stands above the other. */
export const APART: readonly (readonly [string, string])[] = [
  ['src/http/application/', 'src/http/management/'],
]
