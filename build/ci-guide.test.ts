/** The guide to CI: its commands, files and messages are those of the program. */
import { mkdtempSync, readFileSync, rmSync, writeFileSync } from 'node:fs'
import { tmpdir } from 'node:os'
import { join } from 'node:path'
import { YAML } from 'bun'
import { expect, test } from 'vitest'
import { parseLine } from '../src/client/command-line/arguments.ts'
import { COMMANDS } from '../src/client/main.ts'
import { TOKEN_REJECTIONS } from '../src/identity/jwt/rejections.ts'
import { parseSettings } from '../src/settings/settings.ts'
import { BASE, OTHER_PEPPER } from '../testing/environments/environments.ts'
import { SHAPES } from '../testing/providers/workload-issuers.ts'

const GUIDE = readFileSync(join(import.meta.dirname, '../src/docs/ci.md'), 'utf8')

const blocks = (language: string): string[] =>
  [...GUIDE.matchAll(/^```(\w+)\n(.*?)^```/gms)]
    .filter(([, name]) => name === language)
    .map(([, , text]) => text!)

test('the provider file of the guide is accepted by the parser of settings', () => {
  const directory = mkdtempSync(join(tmpdir(), 'svc-guide-'))
  try {
    const [file] = blocks('json')
    const path = join(directory, 'workload-oidc.json')
    writeFileSync(path, file!.replace('"..."', JSON.stringify(OTHER_PEPPER)), { mode: 0o600 })
    const environment = { ...BASE, SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG: path }
    const [provider] = parseSettings(environment, 'check').workloads
    const { issuer, discriminator, algorithm } = SHAPES.github
    expect(provider).toMatchObject({ providerId: 'github', issuer, algorithm })
    expect(provider?.discriminatorClaim).toBe(discriminator[0])
  } finally {
    rmSync(directory, { recursive: true })
  }
})

test('every svc command of the guide is one that the program accepts', () => {
  const lines = [...blocks('sh'), ...blocks('yaml')].flatMap((text) => text.split('\n'))
  const commands = lines.map((line) => /^[\s-]*(svc .*)$/.exec(line)?.[1]).filter((each) => each)
  expect(commands.length).toBeGreaterThan(10)
  for (const command of commands) {
    const parsed = parseLine(command!.split(' ').slice(1), COMMANDS)
    expect(parsed.command?.name, command).toMatch(/^(login|link|release|invite)$/)
  }
})

test('every pipeline of the guide is YAML', () => {
  expect(blocks('yaml')).toHaveLength(4)
  for (const text of blocks('yaml')) expect(YAML.parse(text)).toBeTypeOf('object')
})

test('the guide names issuers and subjects as the tested tokens have them', () => {
  const named = ['github', 'gitlab', 'buildkite', 'kubernetes'] as const
  for (const platform of named) {
    const { claims, discriminator } = SHAPES[platform]
    expect(GUIDE, platform).toContain(discriminator[0])
    if (platform !== 'buildkite') expect(GUIDE, platform).toContain(claims.sub)
    if (platform !== 'kubernetes') expect(GUIDE, platform).toContain(SHAPES[platform].issuer)
  }
})

/** The detail of a login by a subject that nothing admits (identity/oidc/logins.ts). */
const NOT_LINKED = 'the subject has no link, invitation or enrollment'

test('the rules that the guide explains are those of the log', () => {
  const rules = [...GUIDE.matchAll(/^\| ((?:the|a required) [^|]+) \|/gm)].map(([, rule]) => rule!)
  const known = [...Object.values(TOKEN_REJECTIONS), NOT_LINKED]
  expect(rules).toHaveLength(6)
  for (const rule of rules) expect(known).toContain(rule)
})
