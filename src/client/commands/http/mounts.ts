/** `svc http`: the mounts under which other services reach the routes of http.ts. */
import { isPublicUrl, MOUNT_RATE_MAX } from '../../../value/http/mounts.ts'
import { TARGET } from '../../../value/targets.ts'
import type { ListedMount, MountRead } from '../../../wire/http/mounts.ts'
import { deleteMount, listMounts, putMount } from '../../../wire/operations/http-mounts.ts'
import { argument, type CommandSpec, flag, option, requiredOption } from '../../contexts.ts'
import { requestCommand } from '../../request-commands.ts'
import { usage } from '../../usage.ts'
import { changeIntent, changeOptions, operationText, REMOTE, staleRevision } from '../operations.ts'
import { deliveryCommands } from './deliveries.ts'
import { requireMountName } from './mount-names.ts'

const MOUNT = argument('NAME', 'The mount, which is part of the URLs')
const DEFAULT = 'default'

const list = requestCommand({
  name: 'http list',
  summary: 'List the mounts, under which other services reach the routes of http.ts',
  options: REMOTE,
  examples: ['svc http list'],
  progress: 'reading the mounts',
  request: (remote) => remote.call(listMounts),
  rows: ({ mounts }) => mounts,
  columns: {
    NAME: 'name',
    TARGET: targetText,
    URL: (mount) => urlOf(mount, mount.configuration.pathToken ? 'hkt_...' : null),
    RATE: ({ configuration }) => String(configuration.rateLimit ?? DEFAULT),
    CHANGED: 'updatedAtMicros',
  },
  empty: 'Nothing is mounted. Mount the routes of a Channel with `svc http mount`.',
})

const mount: CommandSpec = requestCommand({
  name: 'http mount',
  summary: 'Make or change a mount of the routes of http.ts',
  details: [
    'Other services call URLs below the mount without an Application Key. With --secret-path they',
    'have a secret part, which is printed once; --open-path removes it. Options that are left out',
    'stay as they are.',
  ],
  positionals: [MOUNT],
  options: {
    ...changeOptions('the mount'),
    target: requiredOption('TARGET', 'The target whose routes are mounted'),
    rate: option('N', `Requests a second, or ${DEFAULT}`),
    'secret-path': flag('Add a secret part to the URLs'),
    'open-path': flag('Remove the secret part of the URLs'),
    'public-url': option('URL', 'The URL of the application origin, or none; Twilio signs it'),
  },
  examples: [
    'svc http mount payments --target channel:production',
    'svc http mount sms --target channel:production --public-url https://api.example.com',
  ],
  input: (options, [name], context) => ({
    name: requireMountName(name, 'NAME', mount),
    configuration: {
      target: requireTarget(options.target),
      rateLimit: rateOf(options.rate),
      pathToken: pathTokenOf(options['secret-path'], options['open-path']),
      publicUrl: publicUrlOf(options['public-url']),
    },
    ...changeIntent(context, mount, options),
  }),
  announce: operationText,
  progress: ({ name }) => `mounting ${name}`,
  request: (remote, { name, configuration, expected, operationId, changedAtMicros }) =>
    remote.call(putMount, {
      params: { mount: name },
      operationId,
      body: { configuration, expectedRevision: expected, changedAtMicros },
      subjects: { mount: name },
    }),
  explains: staleRevision('svc http list'),
  lines: (changed) => {
    const { name, configuration, revision, token } = changed
    const hidden = configuration.pathToken ? 'hkt_...' : null
    return [
      `${name} is mounted on ${configuration.target} (revision ${revision}).`,
      `Its URLs begin with ${urlOf(changed, token ?? hidden)}`,
      ...(token === null ? [] : ['The secret part is shown only once. Store it now.']),
    ]
  },
})

const unmount: CommandSpec = requestCommand({
  name: 'http unmount',
  summary: 'Remove a mount; what was accepted before still runs',
  positionals: [MOUNT],
  options: changeOptions('the mount'),
  examples: ['svc http unmount payments'],
  input: (options, [name], context) => ({
    name: requireMountName(name, 'NAME', unmount),
    ...changeIntent(context, unmount, options),
  }),
  announce: operationText,
  progress: ({ name }) => `removing ${name}`,
  request: (remote, { name, expected, operationId, changedAtMicros }) =>
    remote.call(deleteMount, {
      params: { mount: name },
      operationId,
      body: { expectedRevision: expected, changedAtMicros },
      subjects: { mount: name },
    }),
  explains: staleRevision('svc http list'),
  lines: ({ name }) => [`${name} is no longer mounted.`],
})

export const httpCommands: readonly CommandSpec[] = [list, mount, unmount, ...deliveryCommands]

/** Servers of earlier versions do not say which Release the target serves. */
function targetText({ configuration: { target }, releaseId }: ListedMount): string {
  return releaseId === null ? `${target} (serves nothing)` : target
}

/** Returns the URL below which the routes are; a path without the origin if that is not known. */
function urlOf({ configuration, path }: MountRead, token: string | null): string {
  return `${configuration.publicUrl ?? ''}${path}${token === null ? '' : `/${token}`}`
}

function requireTarget(text: string): string {
  if (TARGET.test(text)) return text
  throw usage('--target needs a target such as channel:production.', mount)
}

/** Returns undefined where the rate stays as it is, null for the default. */
function rateOf(text: string | undefined): number | null | undefined {
  if (text === undefined) return undefined
  if (text === DEFAULT) return null
  const rate = /^[1-9][0-9]{0,5}$/.test(text) ? Number(text) : 0
  if (rate >= 1 && rate <= MOUNT_RATE_MAX) return rate
  throw usage(`--rate is a number from 1 to ${MOUNT_RATE_MAX}, or ${DEFAULT}.`, mount)
}

function pathTokenOf(isSecret: boolean, isOpen: boolean): boolean | undefined {
  if (isSecret && isOpen) throw usage('Give --secret-path or --open-path, not both.', mount)
  return isSecret ? true : isOpen ? false : undefined
}

function publicUrlOf(text: string | undefined): string | null | undefined {
  if (text === undefined) return undefined
  if (text === 'none') return null
  const url = text.replace(/\/$/, '')
  if (isPublicUrl(url)) return url
  throw usage('--public-url needs an http or https URL without a query, or none.', mount)
}
