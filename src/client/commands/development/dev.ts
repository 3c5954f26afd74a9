/** `svc dev`: serves a Workspace on this machine and follows the changes of its files. */
import { existsSync } from 'node:fs'
import { basename, join, resolve } from 'node:path'
import { Fault } from '../../../errors/fault.ts'
import { KEYRING_FILE } from '../../../value/product-root.ts'
import type { Json } from '../../../value/strict-json.ts'
import {
  type CommandSpec,
  type Context,
  choice,
  command,
  flag,
  option,
  repeatedOption,
} from '../../contexts.ts'
import type { DevelopmentEvent } from '../../development/events.ts'
import {
  type CopyRequest,
  TEMPLATE_NAMES,
  type TemplateName,
} from '../../development/workspace-tools.ts'
import { readIfPresent } from '../../files.ts'
import { requireTools, workspaceDirectoryOf } from '../../packages.ts'
import { openRoot, readDescriptor, readLink, resolvePath } from '../../roots/roots.ts'
import { usage } from '../../usage.ts'
import { backupPath, backupVariables } from '../backups/sources.ts'
import { createRoot, TEMPLATES } from '../init.ts'
import { attach } from './attach.ts'
import { eventLines } from './display.ts'
import { KEY_OPTION } from './shared-workspaces.ts'

/** Bytes of a seed file. */
const SEED_BYTES_MAX = 16 * 1024 * 1024
/** Bytes of a redaction file. */
const REDACTION_BYTES_MAX = 1024 * 1024
const WORKSPACE_DIRECTORY = 'workspace'

export const devCommand: CommandSpec = command({
  name: 'dev',
  summary: 'Serve a Workspace on this machine and follow its changes',
  details: [
    'Needs no PostgreSQL, no account and no network. Creates the root and a first Workspace if',
    'there are none. Each save is built, checked against the stored documents and served; source',
    'that is not valid leaves the last valid code in place. Documents stay until --reset.',
    'With --attach nothing is served here: each save becomes the HEAD of the Workspace in a shared',
    'Environment, whose purpose is development or preview, until another developer moves the HEAD.',
    'With --from the root begins with the documents of a backup, and --redact replaces fields of',
    'them. Files are read from the backup when they are needed. Keys, identities, configuration',
    'and scheduled work stay behind. A root with documents is left as it is: --reset empties it.',
  ],
  options: {
    root: option('DIR', 'The root, which keeps the documents; it is created if needed'),
    workspace: option('DIR', 'The Workspace; by default the one that the root names'),
    template: choice('NAME', TEMPLATE_NAMES, `What a new Workspace starts with: ${TEMPLATES}`),
    attach: option('URL', 'Synchronize into the shared Environment of this application origin'),
    'key-env': KEY_OPTION,
    freeze: flag('With --attach: freeze each state too, so that calls reach it'),
    prepare: flag('Create the root and the Workspace if needed, build once, and end'),
    port: option('PORT', 'Port on 127.0.0.1; by default 3210, or any that is free'),
    host: flag('Let phones and other devices of the local network call too, with the key'),
    seed: option('FILE', 'Mutations to run if there is no document yet, as a JSON list'),
    from: option('BACKUP', 'Begin with a backup: a directory, a tar file, or s3://bucket/prefix'),
    identity: repeatedOption('FILE', 'With --from: an identity of age that opens the backup'),
    redact: option('FILE', 'With --from: the fields to replace, as JSON (`svc docs dev`)'),
    environment: option('ID', 'With --from: the Environment, if the backup has several'),
    history: option('ID', 'With --from: the history; by default the newest one'),
    reset: flag('Delete all documents, files, Releases and keys of the root first'),
    open: option('URL', 'A page to open in the browser once calls are answered'),
  },
  examples: [
    'svc dev --root ./my-app',
    'svc dev --root ./my-app --reset --seed seed.json',
    'svc dev --root ./my-app --from backup.tar --identity backup.key --redact redact.json',
    'svc dev --attach https://dev.example.com --workspace . --key-env DEV_KEY',
  ],
  async run(context, options) {
    if (options.attach !== undefined) return attachTo(context, options.attach, options)
    if (options.freeze || options['key-env'] !== undefined) {
      throw usage('--freeze and --key-env need --attach.', devCommand)
    }
    if (options.root === undefined) throw usage('Give --root or --attach.', devCommand)
    const rootPath = resolvePath(context.environment, options.root)
    const port = portFrom(options.port)
    const seed = options.seed === undefined ? null : readFile(context, options.seed, SEED_BYTES_MAX)
    if (options.open !== undefined && !/^https?:\/\//.test(options.open)) {
      throw usage('--open needs the http or https address of a page.', devCommand)
    }
    const copy = copyFrom(context, options)
    const tools = await requireTools(context, 'Development')
    const prepared = await prepare(context, rootPath, options)
    const { workspaceDirectory } = prepared
    if (options.prepare) {
      const { projectId } = prepared
      await tools.build({ workspaceDirectory, projectId, checksTypes: true })
      const document = { version: 1, root: rootPath, workspace: workspaceDirectory }
      await context.output.result({ ...document, created: prepared.created }, [
        prepared.created ? `Created the root ${rootPath}.` : `The root ${rootPath} is ready.`,
        `Built the Workspace ${workspaceDirectory}.`,
      ])
      return
    }
    const { reset, host: opensToNetwork } = options
    const shown = new Shown(context, options.open)
    const report = (event: DevelopmentEvent) => shown.add(event)
    context.endsInOrder()
    const { signal } = context
    const variables = backupVariables(context.environment)
    const given = { rootPath, workspaceDirectory, port, opensToNetwork, seed, reset, copy }
    await context.uninterrupted(tools.develop({ ...given, variables, report, signal }))
    await shown.whenIdle()
  },
})

interface CopyOptions {
  readonly from: string | undefined
  readonly identity: readonly string[]
  readonly redact: string | undefined
  readonly environment: string | undefined
  readonly history: string | undefined
}

interface AttachedOptions extends CopyOptions {
  readonly root: string | undefined
  readonly workspace: string | undefined
  readonly 'key-env': string | undefined
  readonly freeze: boolean
  readonly prepare: boolean
  readonly port: string | undefined
  readonly seed: string | undefined
  readonly reset: boolean
  readonly host: boolean
  readonly template: TemplateName | undefined
  readonly open: string | undefined
}

async function attachTo(context: Context, url: string, options: AttachedOptions): Promise<void> {
  const { root, workspace, freeze, prepare, port, seed, reset, host, template, open } = options
  if (hasCopyOption(options)) throw usage('--attach copies no backup.', devCommand)
  const isNew = prepare || template !== undefined
  if (isNew || reset || host || port !== undefined || seed !== undefined || open !== undefined) {
    const detail =
      '--attach takes none of --prepare, --template, --port, --host, --seed, --reset and --open.'
    throw usage(detail, devCommand)
  }
  const { environment } = context
  const workspaceDirectory =
    root === undefined
      ? resolvePath(environment, workspace ?? '.')
      : workspaceDirectoryOf(environment, await openRoot(environment, root), workspace)
  const shown = new Shown(context, undefined, 'What was synchronized before stays as it is.')
  const report = (event: DevelopmentEvent) => shown.add(event)
  const given = { url, variable: options['key-env'], workspaceDirectory, freezes: freeze, report }
  try {
    await attach(context, devCommand, given)
  } finally {
    await shown.whenIdle()
  }
}

function hasCopyOption({ from, identity, redact, environment, history }: CopyOptions): boolean {
  return identity.length > 0 || [from, redact, environment, history].some((given) => given != null)
}

function copyFrom(
  context: Context,
  options: CopyOptions & { readonly prepare: boolean },
): CopyRequest | null {
  if (!hasCopyOption(options)) return null
  const { environment } = context
  const { from, identity, redact, environment: id, history, prepare } = options
  if (from === undefined) {
    throw usage('--identity, --redact, --environment and --history need --from.', devCommand)
  }
  if (identity.length === 0) throw usage('--from needs --identity.', devCommand)
  if (prepare) throw usage('--prepare copies no backup.', devCommand)
  return {
    from: backupPath(environment, from),
    identities: identity.map((file) => resolvePath(environment, file)),
    environmentId: id ?? null,
    historyId: history ?? null,
    redaction: redact === undefined ? null : readFile(context, redact, REDACTION_BYTES_MAX),
  }
}

/** Prints events in their order, each as a whole. */
class Shown {
  readonly #context: Context
  readonly #page: string | undefined
  readonly #remains: string | undefined
  #last: Promise<unknown> = Promise.resolve()

  constructor(context: Context, page: string | undefined, remains?: string) {
    this.#context = context
    this.#page = page
    this.#remains = remains
  }

  add(event: DevelopmentEvent): void {
    const { environment, output } = this.#context
    const lines = eventLines(output, event, environment.system.nowMillis(), this.#remains)
    this.#last = this.#last
      .then(() => output.line(event as unknown as Json, lines.join('\n')))
      // A reader that is gone ends what it reads, not the server.
      .catch(() => undefined)
    if (event.event === 'ready' && this.#page !== undefined) {
      void environment.openBrowser(this.#page)
    }
  }

  async whenIdle(): Promise<void> {
    await this.#last
  }
}

function portFrom(text: string | undefined): number | null {
  if (text === undefined) return null
  if (/^(?:0|[1-9][0-9]{0,4})$/.test(text) && Number(text) <= 65_535) return Number(text)
  throw usage('--port needs a port from 0 to 65535; 0 takes any that is free.', devCommand)
}

function readFile({ environment }: Context, file: string, bytesMax: number): Uint8Array {
  const path = resolvePath(environment, file)
  const bytes = readIfPresent(path, bytesMax)
  if (bytes === null) throw new Fault('CLIENT_FILE_FAILED', { detail: `There is no ${path}.` })
  return bytes
}

/** Creates the root unless there is one. Throws CLIENT_ROOT_INVALID for a linked directory. */
async function prepare(
  context: Context,
  root: string,
  {
    workspace,
    template,
  }: { readonly workspace: string | undefined; readonly template: TemplateName | undefined },
) {
  const { environment } = context
  const given = workspace === undefined ? null : resolvePath(environment, workspace)
  const known = await readDescriptor(root)
  if (known === null) {
    const directory = given ?? join(root, WORKSPACE_DIRECTORY)
    const name = given === null ? basename(root) : undefined
    const wanted = { root, workspace: directory, listen: undefined, name, template }
    const { descriptor } = await createRoot(context, wanted)
    return { workspaceDirectory: directory, projectId: descriptor.projectId, created: true }
  }
  if (template !== undefined) {
    throw usage(`--template is for a new root; ${root} has a Workspace already.`, devCommand)
  }
  if (!existsSync(join(root, KEYRING_FILE)) && (await readLink(root)) !== null) {
    const detail = `${root} is linked to a server and has no documents of its own.`
    throw new Fault('CLIENT_ROOT_INVALID', { detail })
  }
  const workspaceDirectory = given ?? resolve(root, known.workspace ?? WORKSPACE_DIRECTORY)
  return { workspaceDirectory, projectId: known.projectId, created: false }
}
