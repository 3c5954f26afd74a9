/** `svc freeze`: makes the HEAD of a Workspace a validated Release, with a development key. */
import { Fault } from '../../../errors/fault.ts'
import { isId, type WorkspaceRevisionId } from '../../../value/ids.ts'
import { WORKSPACE_NAME } from '../../../value/manifest.ts'
import { argument, type CommandSpec, command, option, requiredOption } from '../../contexts.ts'
import { usage } from '../../usage.ts'
import { incompatible } from './attach.ts'
import { freezeHead, KEY_OPTION, openShared, readHead } from './shared-workspaces.ts'

export const freezeCommand: CommandSpec = command({
  name: 'freeze',
  summary: 'Validate the Release of the HEAD of a Workspace, with a development key',
  details: [
    'The HEAD is what `svc dev --attach` synchronized last. Once it is frozen, release:rel_ID and',
    'workspace:NAME answer it. No Channel is promoted and no Function is called. With --revision',
    'nothing is frozen if the HEAD is another one by then. A failed check ends with 8.',
  ],
  positionals: [argument('WORKSPACE', 'Its name, such as chat')],
  options: {
    url: requiredOption('ORIGIN', 'Origin of the application API'),
    'key-env': KEY_OPTION,
    revision: option('wsr_ID', 'The revision that must be the HEAD; by default whatever is'),
  },
  examples: ['svc freeze chat --url https://dev.example.com --key-env DEV_KEY'],
  async run(context, options, [workspace = '']) {
    const { url, revision, 'key-env': variable } = options
    if (!WORKSPACE_NAME.test(workspace)) {
      throw usage('WORKSPACE needs the name of a Workspace, such as chat.', freezeCommand)
    }
    if (revision !== undefined && !isId('wsr', revision)) {
      throw usage('--revision needs a wsr_ identifier.', freezeCommand)
    }
    const shared = openShared(context, freezeCommand, { url, variable })
    const { output } = context
    const head = revision ?? (await headOf(shared, workspace))
    const request = freezeHead(shared, { workspace, revisionId: head })
    const { releaseId, state, checks } = await output.progress('validating the Release', request)
    const failed = checks.filter(({ outcome }) => outcome === 'failed')
    if (failed.length > 0) throw incompatible(failed)
    const document = { version: 1, workspace, revisionId: head, releaseId, state, checks }
    await output.result(document, [
      `Frozen: ${head} is ${releaseId}, with ${checks.length} checks passed.`,
      `Target: release:${releaseId}`,
    ])
  },
})

async function headOf(
  shared: Parameters<typeof readHead>[0],
  workspace: string,
): Promise<WorkspaceRevisionId> {
  const { head } = await readHead(shared, workspace)
  if (head !== null) return head.revisionId
  throw new Fault('PRODUCT_NOT_FOUND', {
    detail: `The Workspace ${workspace} has no revision yet.`,
  })
}
