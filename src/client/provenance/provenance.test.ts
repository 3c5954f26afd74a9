import { execFileSync } from 'node:child_process'
import { mkdirSync, mkdtempSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import type { FakeServer } from '../../../testing/client/fake-server.ts'
import { linkedClient } from '../../../testing/client/linked-client.ts'
import { packageFrame, type TestClient } from '../../../testing/client/test-client.ts'
import { decodeBase64Url } from '../../value/base64url.ts'
import { readWorkTree, runGit } from './git.ts'
import { readPipeline } from './pipelines.ts'
import { sourceText } from './provenance.ts'

const COMMIT = '0123456789abcdef0123456789abcdef01234567'

describe('a pipeline', () => {
  it.each<[string, Record<string, string>, object]>([
    [
      'of GitHub Actions',
      {
        GITHUB_ACTIONS: 'true',
        GITHUB_SERVER_URL: 'https://github.com',
        GITHUB_REPOSITORY: 'acme/app',
        GITHUB_RUN_ID: '42',
        GITHUB_RUN_ATTEMPT: '2',
        GITHUB_SHA: COMMIT,
        GITHUB_REF_TYPE: 'branch',
        GITHUB_REF_NAME: 'main',
        GITHUB_HEAD_REF: '',
      },
      {
        run: {
          provider: 'github',
          id: '42',
          url: 'https://github.com/acme/app/actions/runs/42/attempts/2',
        },
        commit: COMMIT,
        branch: 'main',
      },
    ],
    [
      'of a pull request on GitHub',
      {
        GITHUB_ACTIONS: 'true',
        GITHUB_RUN_ID: '7',
        GITHUB_REF_TYPE: 'branch',
        GITHUB_REF_NAME: '12/merge',
        GITHUB_HEAD_REF: 'fix-inbox',
      },
      { run: { provider: 'github', id: '7', url: null }, commit: null, branch: 'fix-inbox' },
    ],
    [
      'of a tag on GitHub',
      {
        GITHUB_ACTIONS: 'true',
        GITHUB_RUN_ID: '7',
        GITHUB_REF_TYPE: 'tag',
        GITHUB_REF_NAME: 'v1',
      },
      { run: { provider: 'github', id: '7', url: null }, commit: null, branch: null },
    ],
    [
      'of GitLab',
      {
        GITLAB_CI: 'true',
        CI_PIPELINE_ID: '9',
        CI_PIPELINE_URL: 'https://gitlab.example/acme/-/pipelines/9',
        CI_COMMIT_SHA: COMMIT,
        CI_COMMIT_BRANCH: 'main',
      },
      {
        run: {
          provider: 'gitlab',
          id: '9',
          url: 'https://gitlab.example/acme/-/pipelines/9',
        },
        commit: COMMIT,
        branch: 'main',
      },
    ],
    [
      'of a merge request on GitLab',
      { GITLAB_CI: 'true', CI_PIPELINE_ID: '9', CI_MERGE_REQUEST_SOURCE_BRANCH_NAME: 'fix' },
      { run: { provider: 'gitlab', id: '9', url: null }, commit: null, branch: 'fix' },
    ],
    [
      'of Buildkite',
      {
        BUILDKITE: 'true',
        BUILDKITE_BUILD_NUMBER: '5',
        BUILDKITE_BUILD_URL: 'https://buildkite.com/acme/app/builds/5',
        BUILDKITE_COMMIT: COMMIT,
        BUILDKITE_BRANCH: 'main',
      },
      {
        run: {
          provider: 'buildkite',
          id: '5',
          url: 'https://buildkite.com/acme/app/builds/5',
        },
        commit: COMMIT,
        branch: 'main',
      },
    ],
    [
      'of a tag on Buildkite',
      {
        BUILDKITE: 'true',
        BUILDKITE_BUILD_NUMBER: '5',
        BUILDKITE_BRANCH: 'v1',
        BUILDKITE_TAG: 'v1',
      },
      { run: { provider: 'buildkite', id: '5', url: null }, commit: null, branch: null },
    ],
  ])('%s is read from its variables', (_, variables, expected) => {
    expect(readPipeline((name) => variables[name])).toEqual(expected)
  })

  it('no pipeline is detected if no platform declares one', () => {
    const variables: Record<string, string> = {
      CI: 'true',
      GITHUB_RUN_ID: '1',
      CI_PIPELINE_ID: '2',
    }
    expect(readPipeline((name) => variables[name])).toBeNull()
  })
})

describe('a work tree', () => {
  let directory: string
  beforeEach(() => {
    directory = mkdtempSync(join(tmpdir(), 'svc-git-'))
  })
  afterEach(() => rmSync(directory, { recursive: true, force: true }))

  const identity = ['-c', 'user.name=Ana', '-c', 'user.email=ana@example.com']
  const git = (...line: string[]): string =>
    execFileSync('git', [...identity, ...line], { cwd: directory, encoding: 'utf8' }).trim()
  const write = (name: string, text: string) => writeFileSync(join(directory, name), text)

  it('a work tree has a commit, a branch and files that differ', async () => {
    git('init', '--quiet', '--initial-branch', 'main')
    mkdirSync(join(directory, 'app'))
    write('app/a.ts', 'one')
    const app = join(directory, 'app')
    expect(await readWorkTree(runGit, app)).toEqual({ commit: null, branch: 'main', dirty: true })
    write('.gitignore', 'generated\n')
    git('add', '.')
    git('commit', '--quiet', '--message', 'first')
    const commit = git('rev-parse', 'HEAD')
    const clean = { commit, branch: 'main', dirty: false }
    expect(await readWorkTree(runGit, app)).toEqual(clean)
    write('outside.md', 'new')
    mkdirSync(join(directory, 'app/generated'))
    write('app/generated/b.ts', 'ignored')
    expect(await readWorkTree(runGit, app)).toEqual(clean)
    write('app/new.ts', 'untracked')
    expect(await readWorkTree(runGit, app)).toEqual({ ...clean, dirty: true })
    git('add', '.')
    git('commit', '--quiet', '--message', 'second')
    git('checkout', '--quiet', commit)
    expect(await readWorkTree(runGit, app)).toEqual({ ...clean, branch: null })
    write('app/a.ts', 'two')
    expect(await readWorkTree(runGit, app)).toEqual({ commit, branch: null, dirty: true })
  })

  it('no work tree is found outside of a repository, or in a missing directory', async () => {
    expect(await readWorkTree(runGit, directory)).toBeNull()
    expect(await readWorkTree(runGit, join(directory, 'missing'))).toBeNull()
  })
})

describe('a publication', () => {
  let server: FakeServer
  let client: TestClient

  beforeEach(async () => {
    ;({ server, client } = await linkedClient())
    writeFileSync(join(client.home, 'app.svcpkg'), packageFrame(server.projectId))
    const build = async () => ({ frame: packageFrame(server.projectId), warnings: [] })
    client.tools = {
      build,
      generate: async () => ({ changed: [], warnings: [] }),
      writeWorkspace: async () => [],
    }
  })

  const REMOTE = ['--remote', '--root', 'root']
  const PACKAGE = [...REMOTE, '--package', 'app.svcpkg']
  const SOURCE = [...REMOTE, '--workspace', 'app']
  const HEAD = `# branch.oid ${COMMIT}\n# branch.head (detached)\n? new.ts\n`
  const PIPELINE = { GITLAB_CI: 'true', CI_PIPELINE_ID: '9', CI_COMMIT_SHA: 'f'.repeat(40) }

  function declared(): unknown {
    const [request] = server.requestsTo('POST', `${server.base}/workspace/publish`)
    const header = request!.headers['x-service-provenance']
    if (header === undefined) return null
    return JSON.parse(new TextDecoder().decode(decodeBase64Url(String(header))))
  }

  it('a publication from source declares the work tree, the message and the run', async () => {
    const asked: string[] = []
    client.git = async (directory) => {
      asked.push(directory)
      return HEAD
    }
    Object.assign(client.variables, PIPELINE, { CI_COMMIT_BRANCH: 'main' })
    const ran = await client.run('release', ...SOURCE, '--message', 'Größer', '--json')
    expect(ran.exit).toBe(0)
    expect(asked).toEqual([join(client.home, 'app')])
    const provenance = {
      message: 'Größer',
      commit: COMMIT,
      branch: 'main',
      dirty: true,
      run: { provider: 'gitlab', id: '9', url: null },
    }
    expect(declared()).toEqual(provenance)
    expect(JSON.parse(ran.out).provenance).toEqual(provenance)
  })

  it('a package that was built elsewhere declares what the pipeline says', async () => {
    client.git = async () => HEAD
    Object.assign(client.variables, PIPELINE)
    expect((await client.run('publish', ...PACKAGE)).exit).toBe(0)
    expect(declared()).toMatchObject({ commit: 'f'.repeat(40), dirty: null, message: null })
  })

  it('declares nothing where nothing is known', async () => {
    expect((await client.run('publish', ...PACKAGE)).exit).toBe(0)
    expect(declared()).toBeNull()
  })

  it('leaves out what the server would reject', async () => {
    const variables = { BUILDKITE: 'true', BUILDKITE_BUILD_NUMBER: '5' }
    const strange = { BUILDKITE_COMMIT: 'HEAD', BUILDKITE_BRANCH: 'a\u001b[2J' }
    const url = { BUILDKITE_BUILD_URL: 'file:///etc/passwd' }
    Object.assign(client.variables, variables, strange, url)
    expect((await client.run('publish', ...PACKAGE)).exit).toBe(0)
    expect(declared()).toEqual({
      message: null,
      commit: null,
      branch: null,
      dirty: null,
      run: { provider: 'buildkite', id: '5', url: null },
    })
  })

  it.each(['', 'two\nlines', 'x'.repeat(513), '\u001b[2J'])(
    'a publication with the message %j sends no request',
    async (message) => {
      const ran = await client.run('publish', ...PACKAGE, '--message', message)
      expect(ran.exit).toBe(2)
      expect(server.requests).toEqual([])
    },
  )
})

it.each<[object, string]>([
  [{}, '-'],
  [{ branch: 'main' }, 'main'],
  [{ commit: COMMIT }, '@0123456789ab'],
  [{ branch: 'main', commit: COMMIT, dirty: true }, 'main@0123456789ab+'],
  [{ branch: 'main', commit: COMMIT, dirty: false }, 'main@0123456789ab'],
  [{ run: { provider: 'github', id: '42', url: null } }, 'github 42'],
])('the source %j is shown as %s', (given, text) => {
  const nothing = { message: null, commit: null, branch: null, dirty: null, run: null }
  expect(sourceText({ ...nothing, ...given })).toBe(text)
})
