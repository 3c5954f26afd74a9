/** `svc init`: creates a Product root, and a first Workspace if there is none. */

import { existsSync, mkdirSync, rmdirSync, rmSync } from 'node:fs'
import { basename, dirname, isAbsolute, join, relative, sep } from 'node:path'
import { Fault } from '../../errors/fault.ts'
import { isName } from '../../value/names.ts'
import {
  DESCRIPTOR_FILE,
  formatKeyring,
  KEY_BYTES,
  KEYRING_FILE,
  type RootDescriptor,
} from '../../value/product-root.ts'
import { shellQuoted } from '../../value/shell/shell-words.ts'

import {
  type CommandSpec,
  type Context,
  choice,
  command,
  option,
  requiredOption,
} from '../contexts.ts'
import { TEMPLATE_NAMES, type TemplateName } from '../development/workspace-tools.ts'
import { createFile, withPath } from '../files.ts'
import { LOCAL_ORIGIN } from '../origins.ts'
import { requireTools } from '../packages.ts'
import { createDescriptor, readRootFile, resolvePath } from '../roots/roots.ts'
import { usage } from '../usage.ts'

const PRIVATE_FILE = 0o600
const PRIVATE_DIRECTORY = 0o700
const LISTEN = /^(?:[A-Za-z0-9.-]{1,253}|\[[0-9A-Fa-f:]{2,45}\]):(0|[1-9][0-9]{0,4})$/
const WORKSPACE_ENTRY = 'schema.ts'
export const TEMPLATES = 'chat (default), api or empty'

export const initCommand: CommandSpec = command({
  name: 'init',
  summary: 'Create a Product root and a first Workspace',
  details: [
    'Writes service.json and keyring.json (0600) to --root, which must not be a root yet, and the',
    'first files of a Workspace if --workspace has none, among them AGENTS.md and .mcp.json for',
    'coding agents (`svc docs agents`). Existing files are not overwritten.',
    'Keep keyring.json secret, and include it in every backup.',
  ],
  options: {
    root: requiredOption('DIR', 'The new root, which a server serves'),
    workspace: requiredOption('DIR', 'The Workspace, which has the source of the Functions'),
    listen: option('HOST:PORT', 'Address for applications, kept in service.json'),
    template: choice('NAME', TEMPLATE_NAMES, `What the Workspace starts with: ${TEMPLATES}`),
    name: option('NAME', 'Display name; by default the name of the Workspace directory'),
  },
  examples: ['svc init --root ./my-app-root --workspace ./my-app'],
  async run(context, options) {
    const root = resolvePath(context.environment, options.root)
    const workspace = resolvePath(context.environment, options.workspace)
    await report(context, await createRoot(context, { ...options, root, workspace }))
  },
})

interface Wanted {
  /** Absolute, as is `workspace`. */
  readonly root: string
  readonly workspace: string
  readonly listen: string | undefined
  readonly name: string | undefined
  /** Absent for the usual one. */
  readonly template?: TemplateName | undefined
}

/**
 * Creates a root, and a Workspace if the directory has none. Throws CLIENT_USAGE,
 * CLIENT_ROOT_EXISTS, CLIENT_FILE_FAILED; nothing is left of a failed attempt.
 */
export async function createRoot(context: Context, wanted: Wanted): Promise<Made> {
  const { root, workspace } = wanted
  const { template = TEMPLATE_NAMES[0] } = wanted
  const descriptor = describe(context, wanted)
  if (existsSync(join(root, DESCRIPTOR_FILE))) {
    throw rootExists(root)
  }
  const takeBack = await prepareRoot(context, root)
  let written: readonly string[]
  try {
    const content = { name: descriptor.name, template, rootDirectory: root }
    written = await writeWorkspace(context, workspace, content)
  } catch (error) {
    takeBack()
    throw error
  }
  if (!createDescriptor(root, descriptor)) throw rootExists(root)
  return { root, workspace, descriptor, written }
}

function describe(context: Context, { root, workspace, listen, name }: Wanted): RootDescriptor {
  const { system } = context.environment
  if (listen !== undefined && (!LISTEN.test(listen) || Number(listen.split(':').at(-1)) > 65_535)) {
    throw usage('--listen needs an address such as 127.0.0.1:3210.', initCommand)
  }
  const shown = (name ?? basename(workspace)).normalize('NFC')
  if (!isName(shown)) throw usage('--name needs 1 to 128 printable characters.', initCommand)
  return {
    version: 1,
    projectId: system.ids.make('prj'),
    environmentId: system.ids.make('env'),
    name: shown,
    slug: slugOf(shown),
    createdAtMicros: system.nowMicros(),
    workspace: portablePath(root, workspace),
    listen: listen ?? null,
  }
}

function slugOf(name: string): string {
  const words = name
    .normalize('NFKD')
    .replace(/\p{M}+/gu, '')
    .toLowerCase()
    .replace(/[^a-z0-9]+/g, '-')
    .replace(/^[^a-z]+|-+$/g, '')
    .slice(0, 63)
    .replace(/-+$/, '')
  return words === '' ? 'app' : words
}

/** Returns a relative path, so that both directories can be moved, or an absolute one. */
function portablePath(root: string, workspace: string): string {
  const path = relative(root, workspace)
  return isAbsolute(path) ? path : path === '' ? '.' : path.split(sep).join('/')
}

/** Writes the first files, unless the directory has a schema and so is a Workspace already. */
async function writeWorkspace(
  context: Context,
  workspaceDirectory: string,
  content: {
    readonly name: string
    readonly template: TemplateName
    readonly rootDirectory: string
  },
): Promise<readonly string[]> {
  if (existsSync(join(workspaceDirectory, WORKSPACE_ENTRY))) return []
  const tools = await requireTools(context, 'Writing a Workspace')
  return tools.writeWorkspace({ workspaceDirectory, ...content })
}

/**
 * Creates the directory and its keyring before the Workspace, so that a failure leaves none behind.
 * service.json is written last: a directory without it is not a root, and the next run completes it
 * with the existing keyring. Returns a function that removes what this run created.
 */
async function prepareRoot({ environment }: Context, root: string): Promise<() => void> {
  const { system } = environment
  const first = withPath(root, () => mkdirSync(root, { recursive: true, mode: PRIVATE_DIRECTORY }))
  const keyring = join(root, KEYRING_FILE)
  const id = `k${system.ids.ulid().toLowerCase()}`
  const key = system.randomBytes(KEY_BYTES)
  const createdAtMicros = system.nowMicros()
  const content = formatKeyring({ version: 1, keys: [{ id, key, createdAtMicros }], active: id })
  const isNew = createFile(keyring, content, PRIVATE_FILE)
  if (!isNew) {
    await readRootFile(keyring, async (text) => {
      const { parseKeyring } = await import('../../wire/files/product-root.ts')
      return parseKeyring(text)
    })
  }
  return () => {
    if (isNew) rmSync(keyring, { force: true })
    if (first !== undefined) removeEmpty(root, first)
  }
}

/** Removes the directories from `last` up to `first`, as far as they are empty. */
function removeEmpty(last: string, first: string): void {
  try {
    for (let path = last; path.length >= first.length; path = dirname(path)) rmdirSync(path)
  } catch {
    // A directory that is not empty stays.
  }
}

function rootExists(root: string): Fault {
  return new Fault('CLIENT_ROOT_EXISTS', { detail: `${root} has a ${DESCRIPTOR_FILE}.` })
}

/** A root that was created, with the files of the Workspace that were. */
export interface Made {
  readonly root: string
  readonly workspace: string
  readonly descriptor: RootDescriptor
  readonly written: readonly string[]
}

async function report(context: Context, made: Made): Promise<void> {
  const { root, workspace, descriptor, written } = made
  const { projectId, environmentId, name, slug } = descriptor
  const develop = `svc dev --root ${shellQuoted(root)}`
  const next = [
    `SERVICE_PRODUCT_ROOT=${shellQuoted(root)} svc-server serve`,
    `svc login --url ${LOCAL_ORIGIN} --code-env SVC_CODE && svc link --root ${shellQuoted(root)}`,
    `svc release --root ${shellQuoted(root)} --channel production`,
  ]
  await context.output.result(
    {
      version: 1,
      root,
      workspace,
      projectId,
      environmentId,
      name,
      slug,
      workspaceFiles: [...written],
      develop,
      next,
    },
    [
      `Created the root ${root} (${environmentId}).`,
      written.length === 0
        ? `The Workspace ${workspace} stays as it is.`
        : `Created the Workspace ${workspace}: ${written.length} files.`,
      'Next, on this machine alone:',
      `  ${develop}`,
      'Or on a server:',
      ...next.map((line) => `  ${line}`),
    ],
  )
}
