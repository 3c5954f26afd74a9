/**
 * Generates one TypeScript module with the texts that `svc` gives to Workspaces: the module "svc"
 * as JavaScript, its types, and the templates. `--check` changes nothing and fails if it is stale.
 */
import { readdirSync, readFileSync } from 'node:fs'
import { join } from 'node:path'
import { type BuildOptions, build } from 'esbuild'
import { generateFiles, type SdkTexts, sharedFiles } from '../src/dev/codegen/codegen.ts'
import { readWorkspaceFiles } from '../src/dev/workspace/workspace-files.ts'
import { assert } from '../src/errors/assert.ts'
import type { Json } from '../src/value/strict-json.ts'
import { parseDescription } from '../src/wire/files/manifest.ts'
import { describeHere } from '../testing/describe-here.ts'
import { pureModules } from './bundled-text.ts'
import { isFileStale, updateFiles } from './generated-files.ts'

const ENTRY = 'src/sdk/authoring.ts'
const TYPES = 'src/sdk/svc.d.ts'
const GLOBALS = 'src/sdk/globals.d.ts'
const TEST_KIT = 'src/test-kit/test-kit.ts'
const TEST_KIT_TYPES = 'src/test-kit/testing.d.ts'
const AGENTS = 'src/sdk/agents.md'
const TEMPLATES = 'src/sdk/templates'
const MODULE = 'src/sdk/embedded.generated.ts'

/** Returns the generated module. The same sources give the same bytes on every machine. */
export async function renderSdk(root: string): Promise<string> {
  const read = (path: string) => readFileSync(join(root, path), 'utf8')
  const sdk = {
    module: read(TYPES),
    globals: read(GLOBALS),
    runtime: await moduleText(root, ENTRY, []),
    testKit: await moduleText(root, TEST_KIT, ['node:*']),
    testKitTypes: read(TEST_KIT_TYPES),
  }
  return [
    '/** Generated from src/sdk and src/test-kit by build/embed-sdk.ts. Do not edit. */\n',
    '/** The modules "svc" and "svc/test", their declarations, and the globals of Functions. */',
    `export const SDK_TEXTS = ${json(sdk)}\n`,
    '/** AGENTS.md of a new Workspace: how its Functions are written. */',
    `export const AGENTS_TEXT = ${JSON.stringify(read(AGENTS))}\n`,
    '/** Files of each template, by path, without those that all Workspaces share. */',
    'export const TEMPLATES: Readonly<Record<string, Readonly<Record<string, string>>>> =',
    `  ${json(await templates(root, sdk))}\n`,
  ].join('\n')
}

function json(value: object): string {
  return JSON.stringify(value, null, 2)
}

async function moduleText(
  root: string,
  entry: string,
  external: readonly string[],
): Promise<string> {
  return bundled({
    absWorkingDir: root,
    entryPoints: [entry],
    external: [...external],
    format: 'esm',
    plugins: [pureModules],
  })
}

async function bundled(options: BuildOptions): Promise<string> {
  const result = await build({
    ...options,
    bundle: true,
    write: false,
    platform: 'neutral',
    target: 'es2024',
    charset: 'ascii',
    legalComments: 'none',
    minifySyntax: true,
  })
  const output = result.outputFiles?.[0]
  assert(output !== undefined && result.outputFiles?.length === 1, 'the bundle is not one file')
  return output.text
}

async function templates(root: string, sdk: SdkTexts): Promise<object> {
  const found: Record<string, Record<string, string>> = {}
  for (const name of readdirSync(join(root, TEMPLATES)).sort()) {
    const directory = join(root, TEMPLATES, name)
    found[name] = { ...filesOf(directory, ''), ...(await generated(root, directory, sdk)) }
  }
  return found
}

/** Generates the types of a template, so that a new Workspace compiles before its first build. */
async function generated(
  root: string,
  directory: string,
  sdk: SdkTexts,
): Promise<Record<string, string>> {
  const { modules } = readWorkspaceFiles(directory)
  const imports = modules.map(({ file }, i) => `import * as m${i} from './${file}'`)
  const names = modules.map(({ name }, i) => `${JSON.stringify(name)}: m${i}`)
  const contents = [
    "import schema from './schema.ts'",
    ...imports,
    `__svc.define({ schema, modules: { ${names.join(', ')} } })`,
  ].join('\n')
  const source = await bundled({
    stdin: { contents, resolveDir: directory },
    format: 'iife',
    alias: { svc: join(root, ENTRY) },
  })
  const description = parseDescription((await describeHere({ source })) as Json)
  const shared = new Set(sharedFiles(sdk).map(({ path }) => path))
  const files = generateFiles(description, sdk).filter(({ path }) => !shared.has(path))
  return Object.fromEntries(files.map(({ path, text }) => [path, text]))
}

function filesOf(directory: string, prefix: string): Record<string, string> {
  const files: Record<string, string> = {}
  const entries = readdirSync(directory, { withFileTypes: true })
  for (const entry of entries.sort((a, b) => (a.name < b.name ? -1 : 1))) {
    const path = join(directory, entry.name)
    if (entry.isDirectory()) Object.assign(files, filesOf(path, `${prefix}${entry.name}/`))
    else files[`${prefix}${entry.name}`] = readFileSync(path, 'utf8')
  }
  return files
}

/** Returns whether the module is stale. */
export async function isSdkStale(root: string): Promise<boolean> {
  return isFileStale(root, MODULE, await renderSdk(root))
}

if (import.meta.main) {
  updateFiles({ [MODULE]: await renderSdk(join(import.meta.dirname, '..')) })
}
