import { existsSync, mkdirSync, readdirSync, readFileSync, statSync, writeFileSync } from 'node:fs'
import { join } from 'node:path'
import { afterEach, beforeEach, describe, expect, it } from 'vitest'
import { TestClient } from '../../../testing/client/test-client.ts'
import { Fault } from '../../errors/fault.ts'
import { parseKeyring, parseRootDescriptor } from '../../wire/files/product-root.ts'

let client: TestClient

beforeEach(() => {
  client = new TestClient()
  client.tools = {
    build: async () => ({ frame: new Uint8Array(), warnings: [] }),
    generate: async () => ({ changed: [], warnings: [] }),
    writeWorkspace: async ({ workspaceDirectory }) => {
      mkdirSync(workspaceDirectory, { recursive: true })
      writeFileSync(join(workspaceDirectory, 'schema.ts'), '')
      return ['schema.ts']
    },
  }
})

afterEach(() => client[Symbol.dispose]())

function init(...more: string[]) {
  return client.run('init', '--root', 'root', '--workspace', 'my app', ...more)
}

function file(name: string): string {
  return readFileSync(join(client.root, name), 'utf8')
}

describe('svc init', () => {
  it.each([
    ['chat', []],
    ['api', ['--template', 'api']],
    ['empty', ['--template', 'empty']],
  ])('writes the template %s', async (expected, parameters) => {
    const asked: string[] = []
    client.tools!.writeWorkspace = async ({ template }) => {
      asked.push(template)
      return []
    }
    expect((await init(...parameters)).exit).toBe(0)
    expect(asked).toEqual([expected])
  })

  it('names the templates where another is asked for, and writes nothing', async () => {
    const ran = await init('--template', 'blog')
    expect(ran.exit).toBe(2)
    expect(ran.err).toContain('--template must be one of chat, api, empty.')
    expect(existsSync(join(client.root, 'root'))).toBe(false)
  })

  it('creates a root, a new keyring and a Workspace', async () => {
    const ran = await init('--listen', '127.0.0.1:3210', '--json')
    expect(ran.exit).toBe(0)
    const descriptor = parseRootDescriptor(file('service.json'))
    expect(descriptor).toMatchObject({
      name: 'my app',
      slug: 'my-app',
      workspace: '../my app',
      listen: '127.0.0.1:3210',
    })
    const { keys, active } = parseKeyring(file('keyring.json'))
    expect([keys.length, keys[0]!.id]).toEqual([1, active])
    expect(statSync(join(client.root, 'keyring.json')).mode & 0o777).toBe(0o600)
    expect(statSync(client.root).mode & 0o777).toBe(0o700)
    expect(readdirSync(client.root).sort()).toEqual(['keyring.json', 'service.json'])
    const document = JSON.parse(ran.out)
    expect(document).toMatchObject({ projectId: descriptor.projectId })
    expect(document.next).toHaveLength(3)
    expect(ran.out).not.toContain(JSON.parse(file('keyring.json')).keys[0].key)
  })

  it('overwrites no file', async () => {
    await init()
    const [descriptor, keyring] = [file('service.json'), file('keyring.json')]
    const again = await init()
    expect([again.exit, again.err]).toEqual([4, expect.stringContaining('CLIENT_ROOT_EXISTS')])
    expect([file('service.json'), file('keyring.json')]).toEqual([descriptor, keyring])
  })

  it('svc init does not change an existing Workspace, with or without the executable', async () => {
    mkdirSync(join(client.home, 'my app'))
    writeFileSync(join(client.home, 'my app', 'schema.ts'), 'mine')
    client.tools = null
    expect((await init()).exit).toBe(0)
    expect(readFileSync(join(client.home, 'my app', 'schema.ts'), 'utf8')).toBe('mine')
  })

  it('completes a root without a descriptor and keeps its keys', async () => {
    await init()
    const keyring = file('keyring.json')
    mkdirSync(join(client.home, 'other'))
    writeFileSync(join(client.home, 'other', 'keyring.json'), keyring)
    const ran = await client.run('init', '--root', 'other', '--workspace', 'my app')
    expect(ran.exit).toBe(0)
    expect(readFileSync(join(client.home, 'other', 'keyring.json'), 'utf8')).toBe(keyring)
  })

  it('creates no root if the Workspace cannot be written', async () => {
    client.tools!.writeWorkspace = async () => {
      throw new Fault('CLIENT_FILE_FAILED')
    }
    expect((await init()).exit).toBe(1)
    expect(existsSync(client.root)).toBe(false)
  })

  it('creates no Workspace if the root cannot be created', async () => {
    mkdirSync(join(client.root, 'keyring.json'), { recursive: true })
    expect(await init()).toMatchObject({ exit: 1, err: expect.stringContaining('keyring.json') })
    writeFileSync(join(client.home, 'file'), '')
    const below = await client.run('init', '--root', 'file/root', '--workspace', 'my app')
    expect(below).toMatchObject({ exit: 1, err: expect.stringContaining('CLIENT_FILE_FAILED') })
    expect(existsSync(join(client.home, 'my app'))).toBe(false)
  })

  it('removes only the directories that it created', async () => {
    client.tools!.writeWorkspace = async () => {
      throw new Fault('CLIENT_FILE_FAILED')
    }
    mkdirSync(join(client.home, 'there'))
    for (const root of ['there', 'a/b/c']) {
      await client.run('init', '--root', root, '--workspace', 'my app')
    }
    expect(readdirSync(client.home)).toEqual(['there'])
    expect(readdirSync(join(client.home, 'there'))).toEqual([])
  })

  it('says that a new Workspace needs the executable', async () => {
    client.tools = null
    expect(await init()).toMatchObject({ exit: 2 })
    expect(existsSync(client.root)).toBe(false)
  })

  it.each([
    ['--listen', '3210'],
    ['--listen', '127.0.0.1:70000'],
    ['--listen', '127.0.0.1:080'],
    ['--name', 'a\nb'],
    ['--name', 'x'.repeat(129)],
  ])('rejects %s %j', async (option, value) => {
    expect((await init(option, value)).exit).toBe(2)
    expect(existsSync(client.root)).toBe(false)
  })

  it.each([
    ['Ünïcode & Söhne', 'unicode-sohne'],
    ['42', 'app'],
    ['9 lives', 'lives'],
    ['日本', 'app'],
  ])('derives a slug from %j', async (name, slug) => {
    await init('--name', name)
    expect(parseRootDescriptor(file('service.json'))).toMatchObject({ name, slug })
  })
})
