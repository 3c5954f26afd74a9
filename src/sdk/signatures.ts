/** `signature`: how the server verifies the requests of a hook. Only names of secrets are given. */
import { isConfigurationName } from '../value/configuration.ts'
import {
  HEADER_NAME,
  HMAC_ALGORITHMS,
  HMAC_ENCODINGS,
  type SignatureManifest,
  TOLERANCE_SECONDS_DEFAULT,
  TOLERANCE_SECONDS_MAX,
} from '../value/http/routes.ts'
import {
  DefinitionError,
  isPlainObject,
  quotedList,
  rejectUnknownOptions,
} from './definition-errors.ts'
import { kindOf } from './validators.ts'

const SIGNATURE = Symbol.for('svc.signature')
/** The text before a digest, such as `sha256=`. */
const PREFIX = /^[!-~]{0,64}$/
const HMAC_OPTIONS = [
  'secret',
  'header',
  'algorithm',
  'encoding',
  'prefix',
  'timestampHeader',
  'toleranceSeconds',
]

export interface SignatureDefinition {
  readonly [SIGNATURE]: SignatureManifest
}

type Options = { readonly [name: string]: unknown }

export function isSignature(value: unknown): value is SignatureDefinition {
  return typeof value === 'object' && value !== null && SIGNATURE in value
}

export function signatureContent(definition: SignatureDefinition): SignatureManifest {
  return definition[SIGNATURE]
}

function define(content: SignatureManifest): SignatureDefinition {
  return Object.freeze({ [SIGNATURE]: Object.freeze(content) })
}

function optionsOf(given: unknown, allowed: readonly string[], owner: string): Options {
  if (!isPlainObject(given)) {
    throw new DefinitionError(
      `${owner} is given ${kindOf(given)}`,
      `Pass an object: { ${allowed[0]}: ... }`,
    )
  }
  rejectUnknownOptions(given, allowed, owner)
  return given
}

function secretOf({ secret }: Options, owner: string): string {
  if (typeof secret === 'string' && isConfigurationName(secret)) return secret
  // A wrong text may be the secret itself, so the message does not repeat it.
  throw new DefinitionError(
    `${owner} secret is ${typeof secret === 'string' ? 'not a name' : kindOf(secret)}`,
    'Write the name of a secret of the Environment, such as "STRIPE_WEBHOOK", and set its value ' +
      'with `svc config set`',
  )
}

function toleranceOf({ toleranceSeconds: value }: Options, owner: string): number {
  if (value === undefined) return TOLERANCE_SECONDS_DEFAULT
  const isCount = typeof value === 'number' && Number.isInteger(value)
  if (isCount && value >= 1 && value <= TOLERANCE_SECONDS_MAX) return value
  throw new DefinitionError(
    `${owner} toleranceSeconds is ${typeof value === 'number' ? value : kindOf(value)}`,
    `Write a whole number from 1 to ${TOLERANCE_SECONDS_MAX}`,
  )
}

const withTime = (scheme: 'standardWebhooks' | 'stripe' | 'slack') => (given: unknown) => {
  const owner = `signature.${scheme}(...)`
  const options = optionsOf(given, ['secret', 'toleranceSeconds'], owner)
  const toleranceSeconds = toleranceOf(options, owner)
  return define({ scheme, secret: secretOf(options, owner), toleranceSeconds })
}

const ofBody = (scheme: 'github' | 'twilio') => (given: unknown) => {
  const owner = `signature.${scheme}(...)`
  return define({ scheme, secret: secretOf(optionsOf(given, ['secret'], owner), owner) })
}

function headerOf(name: string, value: unknown, owner: string): string {
  const header = typeof value === 'string' ? value.toLowerCase() : ''
  if (HEADER_NAME.test(header)) return header
  throw new DefinitionError(
    `${owner} ${name} is ${typeof value === 'string' ? `"${value}"` : kindOf(value)}`,
    'Write the name of a header, such as "x-signature"',
  )
}

function choiceOf<T extends string>(
  name: string,
  given: unknown,
  { choices, owner }: { readonly choices: readonly T[]; readonly owner: string },
): T {
  const choice = choices.find((each) => each === given)
  if (choice !== undefined) return choice
  throw new DefinitionError(
    `${owner} ${name} is ${typeof given === 'string' ? `"${given}"` : kindOf(given)}`,
    `Use ${quotedList(choices)}`,
  )
}

function hmac(given: unknown): SignatureDefinition {
  const owner = 'signature.hmac(...)'
  const options = optionsOf(given, HMAC_OPTIONS, owner)
  const { algorithm, encoding, prefix = '', timestampHeader } = options
  if (typeof prefix !== 'string' || !PREFIX.test(prefix)) {
    throw new DefinitionError(`${owner} prefix is not a prefix`, 'Write it as in "sha256="')
  }
  if (timestampHeader === undefined && options.toleranceSeconds !== undefined) {
    const fix = 'Name the header of the time as timestampHeader, or leave toleranceSeconds out'
    throw new DefinitionError(`${owner} has toleranceSeconds, but no time is signed`, fix)
  }
  return define({
    scheme: 'hmac',
    secret: secretOf(options, owner),
    header: headerOf('header', options.header, owner),
    algorithm: choiceOf('algorithm', algorithm, { choices: HMAC_ALGORITHMS, owner }),
    encoding: choiceOf('encoding', encoding, { choices: HMAC_ENCODINGS, owner }),
    prefix,
    ...(timestampHeader !== undefined && {
      timestampHeader: headerOf('timestampHeader', timestampHeader, owner),
      toleranceSeconds: toleranceOf(options, owner),
    }),
  })
}

function jwt(given: unknown): SignatureDefinition {
  const owner = 'signature.jwt(...)'
  const { issuer, subject } = optionsOf(given, ['issuer', 'subject'], owner)
  if (typeof issuer !== 'string' || issuer === '' || issuer.length > 1_024) {
    const fix = 'Write the issuer of a JWT provider of kind "service", as in its `iss`'
    throw new DefinitionError(`${owner} issuer is ${kindOf(issuer)}`, fix)
  }
  if (subject !== undefined && (typeof subject !== 'string' || subject.length > 1_024)) {
    const fix = 'Write the exact `sub` of the tokens, or leave it out'
    throw new DefinitionError(`${owner} subject is ${kindOf(subject)}`, fix)
  }
  return define({ scheme: 'jwt', issuer, ...(subject !== undefined && { subject }) })
}

export const signature = Object.freeze({
  standardWebhooks: withTime('standardWebhooks'),
  stripe: withTime('stripe'),
  slack: withTime('slack'),
  github: ofBody('github'),
  twilio: ofBody('twilio'),
  hmac,
  jwt,
})
