/**
 * Hooks between a release and the one before it, which has none: clear errors, nothing lost.
 *
 * @module-tag slow
 */
import { describe, expect, onTestFinished, test } from 'vitest'
import { previousCommit, previousPrograms } from '../../testing/servers/previous-release.ts'
import { startServer } from '../../testing/servers/server-process.ts'
import { application } from '../application.ts'
import { argv } from '../argv.ts'
import { CLIENT, productEnvironment, SERVER } from '../harness.ts'
import { effects, untilHandled } from './campaign.ts'
import { deliverUntilAccepted } from './deliveries.ts'
import { hookedApplication, writeHooks } from './workspace.ts'

const commit = previousCommit()
const isThere = commit === '' ? ' (the history lacks the previous release)' : ''
const EVENT = { hook: 'once', id: 'evt_1' } as const

describe.skipIf(commit === '')(`the previous release${isThere}`, () => {
  test('a server of it does not start on a root with mounts, and changes nothing', async () => {
    const hooked = await hookedApplication()
    const { app } = hooked
    const { installation } = app
    onTestFinished(() => installation.dispose())
    const list = () => app.svc(argv`http list --remote --root ${installation.productRoot}`)
    const first = await deliverUntilAccepted(hooked, EVENT)
    const mounts = await list()
    await app.server.stop()
    const starting = startServer({
      executable: previousPrograms(commit).server,
      args: [],
      environment: { ...installation.environment, ...productEnvironment(installation) },
      directory: installation.directory,
    })
    await expect(starting).rejects.toThrow(/SERVER_\w+: .*unknown to this program/)
    await app.start()
    expect(await list()).toEqual(mounts)
    expect(await deliverUntilAccepted(hooked, EVENT)).toBe(first)
    await untilHandled(hooked)
    expect(await effects(hooked)).toEqual(new Map([[EVENT.id, 1]]))
  })

  test('a client of it names the line of a hook that it cannot build', async () => {
    const { client } = previousPrograms(commit)
    const { failure } = await releaseHooks({ client, server: SERVER })
    expect(failure).toMatch(/WORKSPACE_INVALID.*functions\/hooks\.ts:\d+:\d+.*httpDelivery/s)
  })

  test('a server of it rejects a Release with hooks, and serves the one before', async () => {
    const { server } = previousPrograms(commit)
    const { failure, listed } = await releaseHooks({ client: CLIENT, server })
    expect(failure).toMatch(/PRODUCT_INVALID.*\$\.http: no unknown field/s)
    expect(failure).toContain('The server is older than this svc')
    expect(listed).toMatch(/PLATFORM_NOT_FOUND.*The server is older than this svc/s)
  })
})

/** Serves a Workspace, then releases it with hooks; returns what `svc` prints. */
async function releaseHooks(executables: { readonly client: string; readonly server: string }) {
  const { installation, releaseId, svc } = await application(undefined, {}, executables)
  onTestFinished(() => installation.dispose())
  writeHooks(installation.workspace)
  const remote = argv`--remote --root ${installation.productRoot}`
  const failed = await installation.svc(argv`
    release --channel production --no-typecheck ${remote}
  `)
  expect(failed.status).toBe(8)
  const { channels } = await svc(argv`status ${remote}`)
  expect(JSON.stringify(channels)).toContain(releaseId)
  const listed = await installation.svc(argv`http list ${remote}`)
  return { failure: failed.stdout + failed.stderr, listed: listed.stderr }
}
