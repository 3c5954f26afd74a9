import { writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { beforeEach, describe, expect, it, vi } from 'vitest'
import {
  type FakeServer,
  failure,
  newId,
  type Recorded,
} from '../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../testing/client/linked-client.ts'
import { packageFrame, type TestClient } from '../../../testing/client/test-client.ts'
import { Fault } from '../../errors/fault.ts'

let server: FakeServer
let client: TestClient

beforeEach(async () => {
  ;({ server, client } = await linkedClient())
  writeFileSync(join(client.home, 'app.svcpkg'), packageFrame(server.projectId))
})

const REMOTE = ['--remote', '--root', 'root']
const PACKAGE = [...REMOTE, '--package', 'app.svcpkg']

function release(...more: string[]) {
  return client.run('release', ...PACKAGE, '--channel', 'production', '--json', ...more)
}

describe('svc publish', () => {
  it('expects the head that the status shows', async () => {
    const ran = await client.run('publish', ...PACKAGE)
    expect(ran.exit).toBe(0)
    expect(ran.err).toContain('expected head empty')
    const [request] = server.requestsTo('POST', `${server.base}/workspace/publish`)
    expect(request!.headers).toMatchObject({
      'x-service-expected-head': 'empty',
      'content-type': 'application/vnd.service.workspace-package.v1',
      accept: 'application/json',
      'content-length': String(packageFrame(server.projectId).length),
    })
  })

  it('repeats equal bytes when the response is lost', async () => {
    let lost = 2
    server.intercept = ({ path }) => (path.endsWith('/publish') && lost-- > 0 ? 'drop-after' : null)
    const ran = await client.run('publish', ...PACKAGE, '--expected-head', 'empty', '--json')
    expect(ran.exit).toBe(0)
    expect(JSON.parse(ran.out)).toMatchObject({ replayed: true, expectedHead: 'empty' })
    const sent = server.requestsTo('POST', `${server.base}/workspace/publish`)
    expect(sent).toHaveLength(3)
    expect(new Set(sent.map(({ body }) => body)).size).toBe(1)
  })

  it('ends with 4 for a stale head', async () => {
    const stale = newId.make('wsr')
    const ran = await client.run('publish', ...PACKAGE, '--expected-head', stale)
    expect(ran.exit).toBe(4)
    expect(ran.err).toMatch(/^svc: PRODUCT_CAS_CONFLICT: .+\n {2}.+\n {2}request req_/)
  })

  it('accepts a manifest with its artifact', async () => {
    const frame = packageFrame(server.projectId)
    const head = new DataView(frame.buffer)
    const split = 16 + head.getUint32(8)
    writeFileSync(join(client.home, 'm.json'), frame.subarray(16, split))
    writeFileSync(join(client.home, 'a.bin'), frame.subarray(split, frame.length - 32))
    const ran = await client.run(
      'publish',
      ...REMOTE,
      '--manifest',
      'm.json',
      '--artifact',
      'a.bin',
    )
    expect(ran.exit).toBe(0)
    const [request] = server.requestsTo('POST', `${server.base}/workspace/publish`)
    expect(request!.headers['content-length']).toBe(String(frame.length))
  })

  it('rejects a damaged package and one of another Project without a request', async () => {
    const damaged = packageFrame(server.projectId)
    damaged[40]! ^= 1
    writeFileSync(join(client.home, 'damaged'), damaged)
    writeFileSync(join(client.home, 'foreign'), packageFrame(newId.make('prj')))
    writeFileSync(join(client.home, 'other'), '127.0.0.1 localhost\n')
    for (const file of ['damaged', 'foreign', 'other']) {
      const ran = await client.run('publish', ...REMOTE, '--package', file)
      expect([ran.exit, ran.err]).toEqual([8, expect.stringContaining('CLIENT_PACKAGE_INVALID')])
    }
    expect(server.requests).toEqual([])
  })
})

describe('svc release', () => {
  it('publishes, validates and promotes, and the second run changes nothing', async () => {
    const first = await release()
    expect(first).toMatchObject({ exit: 0 })
    expect(JSON.parse(first.out)).toMatchObject({
      state: 'validated',
      channel: { channel: 'production', revision: '1', changed: true },
    })
    expect(changes()).toEqual(['publish', expect.stringMatching(/^rel_/), 'production'])
    server.requests.length = 0

    const second = await release()
    expect(JSON.parse(second.out)).toMatchObject({ channel: { revision: '1', changed: false } })
    expect(changes()).toEqual([JSON.parse(first.out).releaseId])
  })

  it('promotes only over the Release that the status showed', async () => {
    const other = newId.make('rel')
    server.channels.set('production', { releaseId: other, revision: 4 })
    server.intercept = ({ path }) => {
      // Another operator deploys between the status and the promotion.
      if (path.includes('/channels/')) {
        server.channels.set('production', { releaseId: newId.make('rel'), revision: 5 })
      }
      return null
    }
    const ran = await release()
    expect(ran.exit).toBe(4)
    const [request] = server.requestsTo('PUT', `${server.base}/channels/production`)
    expect(JSON.parse(request!.body)).toMatchObject({ expectedReleaseId: other })
  })

  it('reconciles a lost promotion with the status and does not repeat it', async () => {
    server.intercept = ({ path }) => (path.includes('/channels/') ? 'drop-after' : null)
    const ran = await release()
    expect(ran.exit).toBe(0)
    expect(JSON.parse(ran.out)).toMatchObject({ channel: { revision: '1', changed: true } })
    expect(server.requestsTo('PUT', `${server.base}/channels/production`)).toHaveLength(1)
  })

  it('a release is uncertain if the response was lost and the Channel is not bound', async () => {
    server.intercept = ({ path }) => (path.includes('/channels/') ? 'drop' : null)
    const ran = await release()
    expect(ran.exit).toBe(9)
    expect(JSON.parse(ran.out)).toMatchObject({ error: { code: 'CLIENT_RESULT_UNCERTAIN' } })
    expect(server.requestsTo('PUT', `${server.base}/channels/production`)).toHaveLength(1)
  })

  it('says that the Environment is archived', async () => {
    server.lifecycle = 'archived'
    const human = await client.run('release', ...PACKAGE, '--channel', 'production')
    expect([human.exit, human.err]).toEqual([0, expect.stringContaining('is archived and serves')])
    expect(human.out).toMatch(/^rel_\w+ is bound to production\.\n$/)
    const status = await client.run('status', '--root', 'root')
    expect(status.out).toMatch(/^env_\w+ {2}archived .*\nThe Environment is archived/)
  })

  it('prints every step for people', async () => {
    const ran = await client.run('release', ...PACKAGE, '--channel', 'production')
    expect(ran.err.split('\n').map((line) => line.split(' ')[0])).toEqual([
      'build',
      'publish',
      'validate',
      'promote',
      '',
    ])
    expect(ran.out).toMatch(/^rel_\w+ serves production\.\n$/)
  })

  it('validates a published Release without a build', async () => {
    await client.run('publish', ...PACKAGE)
    const { releaseId } = server.head!
    const ran = await client.run('release', ...REMOTE, '--release', releaseId, '--against', 'main')
    expect(ran.exit).toBe(0)
    const [request] = server.requestsTo('POST', `${server.base}/releases/${releaseId}`)
    expect(request!.body).toBe('{"against":"main"}')
  })

  describe('with a validation that builds indexes for minutes', () => {
    const releaseId = newId.make('rel')
    const signals: AbortSignal[] = []

    /** The server holds each validation, and `then` is what becomes of the request. */
    function validating(then: (signal: AbortSignal) => Promise<Response>) {
      signals.length = 0
      client.fetch = (url, init) => {
        if (!url.includes('/releases/')) return fetch(url, init)
        const { signal } = init!
        signals.push(signal!)
        return then(signal!)
      }
      return client.run('release', ...REMOTE, '--release', releaseId, '--json')
    }

    it('waits twenty minutes, then names the Release to continue with', async () => {
      const timeout = vi.spyOn(AbortSignal, 'timeout')
      const ran = await validating(async () => {
        throw new DOMException('The operation timed out.', 'TimeoutError')
      })
      expect(Math.max(...timeout.mock.calls.map(([millis]) => millis))).toBeGreaterThan(1_190_000)
      timeout.mockRestore()
      // A runtime with a shorter timeout would send the request again.
      expect(signals.length).toBeGreaterThan(1)
      expect(ran.exit).toBe(9)
      const { error } = JSON.parse(ran.out)
      expect(error).toMatchObject({ code: 'CLIENT_RESULT_UNCERTAIN', retryable: false })
      expect(error.message).toContain('still validate it.')
      expect(error.next).toBe(`Repeat the command with \`--release ${releaseId}\`.`)
    })

    it('a release can be interrupted', async () => {
      const ran = await validating((signal) => {
        setTimeout(() => client.interrupt(), 10)
        return new Promise((_, reject) => {
          signal.addEventListener('abort', () => reject(signal.reason), { once: true })
        })
      })
      expect(ran.exit).toBe(130)
      expect(JSON.parse(ran.out).error.code).toBe('CLIENT_CHANGE_INTERRUPTED')
      expect(signals).toHaveLength(1)
    })
  })

  it('says that a build from source needs the executable', async () => {
    const ran = await client.run('release', ...REMOTE, '--workspace', 'app')
    expect(ran.exit).toBe(2)
    expect(ran.err).toContain('--package FILE')
  })

  it('builds from source with the tools of the executable, and prints their warnings', async () => {
    const asked: unknown[] = []
    client.tools = {
      build: async (input) => {
        asked.push(input)
        return { frame: packageFrame(input.projectId, 'built'), warnings: ['a.ts: unused.'] }
      },
      generate: async () => ({ changed: [], warnings: [] }),
      writeWorkspace: async () => [],
    }
    const ran = await client.run('release', ...REMOTE, '--workspace', 'app')
    expect([ran.exit, ran.err]).toEqual([0, expect.stringContaining('warning: a.ts: unused.')])
    const workspaceDirectory = join(client.home, 'app')
    const { projectId } = server
    expect(asked).toEqual([{ workspaceDirectory, projectId, checksTypes: true }])
    await client.run('release', ...REMOTE, '--workspace', 'app', '--no-typecheck')
    expect(asked[1]).toEqual({ workspaceDirectory, projectId, checksTypes: false })
  })

  it('names the missing directory of the package file', async () => {
    const build = async () => ({ frame: packageFrame(server.projectId), warnings: [] })
    client.tools = {
      build,
      generate: async () => ({ changed: [], warnings: [] }),
      writeWorkspace: async () => [],
    }
    const out = join(client.home, 'nodir', 'x.pkg')
    const ran = await client.run('build', '--root', 'root', '--workspace', 'app', '--out', out)
    const said = `There is no directory ${join(client.home, 'nodir')}.`
    expect([ran.exit, ran.err]).toEqual([1, expect.stringContaining(said)])
  })

  it('shows the problems that the builder found', async () => {
    client.tools = {
      build: async () => {
        throw new Fault('WORKSPACE_INVALID', { detail: 'functions/a.ts:3:1: no such index.' })
      },
      generate: async () => ({ changed: [], warnings: [] }),
      writeWorkspace: async () => [],
    }
    const ran = await client.run('release', ...REMOTE, '--workspace', 'app')
    expect(ran.exit).toBe(8)
    expect(ran.err).toContain('functions/a.ts:3:1: no such index.')
  })

  it('names the checks that failed', async () => {
    const reply = failure('PRODUCT_INCOMPATIBLE')
    const { error } = reply.body as { error: object }
    const violations = [{ path: 'functions.messages.send', rule: 'a declared table' }]
    server.intercept = ({ path }) =>
      path.includes('/releases/')
        ? { ...reply, body: { ...(reply.body as object), error: { ...error, violations } } }
        : null
    const human = await client.run('release', ...PACKAGE)
    expect(human.exit).toBe(8)
    expect(human.err).toContain('  functions.messages.send: a declared table\n')
    const json = await client.run('release', ...PACKAGE, '--json')
    expect(JSON.parse(json.out).error.violations).toEqual(violations)
  })
})

describe('svc promote', () => {
  it('sends no expected Release unless one is given', async () => {
    const releaseId = newId.make('rel')
    const promote = ['promote', ...REMOTE, '--channel', 'main', '--release', releaseId]
    expect(await client.run(...promote)).toMatchObject({ exit: 0 })
    expect(await client.run(...promote, '--expected', 'empty')).toMatchObject({ exit: 4 })
    const sent = server.requestsTo('PUT', `${server.base}/channels/main`).map(({ body }) => body)
    expect(sent).toEqual([
      JSON.stringify({ releaseId }),
      JSON.stringify({ releaseId, expectedReleaseId: 'empty' }),
    ])
  })

  it.each([
    ['published', 'to validate it'],
    ['rejected', 'to see the failed checks'],
    ['validated', 'Choose an earlier Release'],
  ])('says what to do with a Release that is %s', async (state, next) => {
    const releaseId = newId.make('rel')
    server.releases.set(releaseId, { state, packageDigest: `sha256:${'0'.repeat(64)}` })
    const reply = failure('PRODUCT_STATE_CONFLICT')
    const { error } = reply.body as { error: object }
    const violations = [{ path: 'releaseId', rule: 'a validated Release' }]
    server.intercept = ({ method }) =>
      method === 'PUT'
        ? { ...reply, body: { ...(reply.body as object), error: { ...error, violations } } }
        : null
    const ran = await client.run(
      'promote',
      '--root',
      'root',
      '--channel',
      'c',
      '--release',
      releaseId,
    )
    expect(ran.exit).toBe(4)
    expect(ran.err).toContain(`\n  releaseId ${releaseId}: a validated Release\n`)
    expect(ran.err).toContain(next)
  })

  it('names the Release that the Channel is bound to after a stale expectation', async () => {
    const releaseId = newId.make('rel')
    server.channels.set('main', { releaseId, revision: 1 })
    const line = ['--channel', 'main', '--release', newId.make('rel'), '--expected', 'empty']
    const ran = await client.run('promote', ...REMOTE, ...line)
    expect([ran.exit, ran.err]).toEqual([
      4,
      expect.stringContaining(`main is bound to ${releaseId}.`),
    ])
  })
})

function changes(): string[] {
  const writes = server.requests.filter((each: Recorded) => each.method !== 'GET')
  return writes.map(({ path }) => path.split('/').at(-1)!)
}
