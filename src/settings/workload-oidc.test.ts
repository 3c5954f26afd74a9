import { describe, expect, it } from 'vitest'
import { BASE, file, PEPPER } from '../../testing/environments/environments.ts'
import {
  OIDC,
  OIDC_FILE,
  WORKLOADS,
  workloadFields,
} from '../../testing/environments/oidc-files.ts'
import { isFault } from '../errors/fault.ts'
import { parseSettings } from './settings.ts'

const PATH = 'SERVICE_PLATFORM_WORKLOAD_OIDC_CONFIG'
let files = 0

function parse(content: unknown, people?: string) {
  const text = typeof content === 'string' ? content : JSON.stringify(content)
  const environment = {
    ...BASE,
    [PATH]: file(`workloads-${files++}.json`, text),
    ...(people !== undefined && { SERVICE_PLATFORM_OIDC_CONFIG: file('people.json', people) }),
  }
  return parseSettings(environment, 'check')
}

function rejection(content: unknown, people?: string): string {
  try {
    parse(content, people)
  } catch (error) {
    if (!isFault(error, 'SERVER_OIDC_CONFIG_INVALID')) throw error
    expect(error.violations.map(({ path }) => path)).toEqual([PATH])
    expect(`${JSON.stringify(error)}${error.detail}`).not.toMatch(/canary/i)
    return error.violations[0]!.rule
  }
  return 'accepted'
}

/** The file with another second provider. */
const withProvider = (change: object) => ({
  version: 1,
  providers: [workloadFields('ci'), { ...workloadFields('pods'), ...change }],
})
const claims = (count: number) =>
  Object.fromEntries(Array.from({ length: count }, (_, i) => [`canary-${i}`, 'canary']))

describe('the file of workload providers', () => {
  it('each provider gets its claims, and no native client', () => {
    const { workloads, oidc } = parse(WORKLOADS, OIDC_FILE)
    expect(workloads.map(({ providerId }) => providerId)).toEqual(['canary-ci', 'canary-pods'])
    for (const provider of workloads) {
      expect(provider).toMatchObject({ isWorkload: true, nativeClient: null })
      expect(provider.requiredClaims).toEqual(WORKLOADS.providers[0]!.requiredClaims)
      expect(provider.subjectPepper.reveal()).toBe(OIDC.subjectPepper)
      expect(Object.isFrozen(provider.requiredClaims)).toBe(true)
    }
    expect(oidc).toMatchObject({ isWorkload: false, requiredClaims: {} })
  })

  it('the file of workload providers is optional, with and without a provider of people', () => {
    expect(parseSettings(BASE, 'check').workloads).toEqual([])
    expect(parse(WORKLOADS).oidc).toBeNull()
  })

  it('the file of workload providers may require no claim, and at most sixteen', () => {
    for (const count of [0, 16]) {
      const content = withProvider({ requiredClaims: claims(count) })
      expect(Object.keys(parse(content).workloads[1]!.requiredClaims)).toHaveLength(count)
    }
  })

  it('the file of workload providers may name eight providers', () => {
    const eight = Array.from({ length: 8 }, (_, i) => workloadFields(`ci${i}`))
    expect(parse({ version: 1, providers: eight }).workloads).toHaveLength(8)
    const nine = [...eight, workloadFields('ci8')]
    expect(rejection({ version: 1, providers: nine })).toMatch(/^providers: .*1 to 8/)
  })

  it.each<[string, string, unknown]>([
    ['another version', 'version', { ...WORKLOADS, version: 2 }],
    ['no version', 'version', { providers: WORKLOADS.providers }],
    ['no provider', 'providers', { version: 1, providers: [] }],
    ['an unknown field', 'the file', { ...WORKLOADS, canary: 1 }],
    ['a native client', 'providers[1]', withProvider({ nativeClient: OIDC.nativeClient })],
    ['no claims', 'providers[1].requiredClaims', withProvider({ requiredClaims: undefined })],
    [
      'a claim that is not text',
      'providers[1].requiredClaims',
      withProvider({ requiredClaims: { canary: true } }),
    ],
    [
      'a claim that is empty',
      'providers[1].requiredClaims',
      withProvider({ requiredClaims: { canary: '' } }),
    ],
    [
      'a claim without a name',
      'providers[1].requiredClaims',
      withProvider({ requiredClaims: { '': 'canary' } }),
    ],
    [
      'a claim with a long name',
      'providers[1].requiredClaims',
      withProvider({ requiredClaims: { ['c'.repeat(257)]: 'canary' } }),
    ],
    [
      'a claim with a long value',
      'providers[1].requiredClaims',
      withProvider({ requiredClaims: { canary: 'c'.repeat(1025) } }),
    ],
    [
      'a list of claims',
      'providers[1].requiredClaims',
      withProvider({ requiredClaims: ['canary'] }),
    ],
    [
      'seventeen claims',
      'providers[1].requiredClaims',
      withProvider({ requiredClaims: claims(17) }),
    ],
    [
      'a plain HTTP origin',
      'providers[1].allowedOrigins',
      withProvider({ allowedOrigins: ['http://canary.test'] }),
    ],
    [
      'discovery elsewhere',
      'providers[1].discoveryUrl',
      withProvider({ discoveryUrl: 'https://other.canary.test/' }),
    ],
    ['a short pepper', 'providers[1].subjectPepper', withProvider({ subjectPepper: 'canary' })],
    ['the identity pepper', 'providers[1].subjectPepper', withProvider({ subjectPepper: PEPPER })],
    ['one provider ID twice', 'providers', withProvider({ providerId: 'canary-ci' })],
    ['one issuer twice', 'providers', withProvider({ issuer: 'https://ci.canary.test' })],
    ['a duplicate key', 'the file', JSON.stringify(WORKLOADS).replace('{', '{"version":1,')],
    ['text behind it', 'the file', `${JSON.stringify(WORKLOADS)}{}`],
  ])('the file of workload providers is rejected with %s', (_, field, content) => {
    expect(rejection(content).split(': ')[0]).toBe(field)
  })

  it.each([
    ['provider ID', { providerId: OIDC.providerId }],
    ['issuer', { issuer: OIDC.issuer }],
  ])('the file is rejected with the %s of the provider of people', (_, change) => {
    const content = withProvider(change)
    expect(rejection(content)).toBe('accepted')
    expect(rejection(content, OIDC_FILE)).toMatch(/^providers: each .* once/)
  })
})
