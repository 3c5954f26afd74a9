/** `svc http deliveries`, `delivery` and `replay`: what other services sent below a mount. */
import { decodeBase64Url } from '../../../value/base64url.ts'
import { ROUTE_NAME } from '../../../value/http/routes.ts'
import { SCHEDULED_STATES } from '../../../value/scheduling/scheduled-work.ts'
import { PAGE_MAX } from '../../../wire/fields.ts'
import type { DeliveryContent, DeliveryRead } from '../../../wire/http/deliveries.ts'
import {
  listDeliveries,
  readDelivery,
  replayDelivery,
} from '../../../wire/operations/http-mounts.ts'
import { argument, type CommandSpec, choice, option } from '../../contexts.ts'
import { isPageLimit, nextPage, requestCommand } from '../../request-commands.ts'
import { timeText } from '../../timestamps.ts'
import { requireId, usage } from '../../usage.ts'
import { OPERATION_ID, operationIdOf, operationText, REMOTE } from '../operations.ts'
import { requireMountName } from './mount-names.ts'

const MOUNT = argument('MOUNT', 'The mount, such as payments')
const DELIVERY = argument('DELIVERY', 'The delivery, such as sch_...')

const list: CommandSpec = requestCommand({
  name: 'http deliveries',
  summary: 'List what other services sent below a mount, the newest first',
  details: [
    'Shows deliveries that are unfinished or ended within 7 days, and the code of the newest',
    'failure; `svc http delivery` has its reason. A mount keeps a bounded size of them.',
  ],
  positionals: [MOUNT],
  options: {
    ...REMOTE,
    state: choice(
      'STATE',
      SCHEDULED_STATES,
      `Only those in this state: ${SCHEDULED_STATES.join(', ')}`,
    ),
    route: option('NAME', 'Only those of this hook of http.ts'),
    limit: option('COUNT', `Entries of the page, 1 to ${PAGE_MAX}; 100 by default`),
    after: option('sch_ID', 'The `next` of the page before'),
  },
  examples: [
    'svc http deliveries payments',
    'svc http deliveries payments --state failed --route stripe',
  ],
  input({ state, route, limit = '100', after }, [mount]) {
    if (!isPageLimit(limit)) throw usage(`--limit is 1 to ${PAGE_MAX}.`, list)
    if (after !== undefined) requireId('sch', after, '--after', list)
    if (route !== undefined && !ROUTE_NAME.test(route)) {
      throw usage('--route is the name of a hook of http.ts, such as stripe.', list)
    }
    const query = { state, route, limit, after }
    return { mount: requireMountName(mount, 'MOUNT', list), query }
  },
  progress: 'reading the deliveries',
  request: (remote, { mount, query }) => {
    return remote.call(listDeliveries, { params: { mount }, query, subjects: { mount } })
  },
  rows: ({ items }) => items,
  columns: {
    ID: 'deliveryId',
    RECEIVED: 'receivedAtMicros',
    ROUTE: 'route',
    EVENT: 'event',
    STATE: 'state',
    ATTEMPTS: 'attempts',
    ERROR: 'lastErrorCode',
  },
  note: (page) => {
    if (!page.items.some(({ state }) => state === 'failed')) return nextPage(page)
    const next = 'See why one failed with `svc http delivery`; `svc http replay` runs it again.'
    return [next, nextPage(page)].filter((line) => line !== null).join(' ')
  },
})

const read: CommandSpec = requestCommand({
  name: 'http delivery',
  summary: 'Show a delivery: what came, what it became, and why it failed',
  details: [
    'The headers, the query and the body are shown to operators that may read documents. They are',
    'dropped once a delivery has succeeded, unless they are short.',
  ],
  positionals: [MOUNT, DELIVERY],
  options: REMOTE,
  examples: ['svc http delivery payments sch_...'],
  input: (_, [mount, delivery]) => ({
    mount: requireMountName(mount, 'MOUNT', read),
    scheduledId: requireId('sch', delivery, 'DELIVERY', read),
  }),
  progress: 'reading the delivery',
  request: (remote, params) => remote.call(readDelivery, { params, subjects: { ...params } }),
  lines: (delivery) => [...factsOf(delivery), ...contentOf(delivery)],
  note: ({ state, mount, deliveryId }) => {
    if (state !== 'failed') return null
    const replays = `\`svc http replay ${mount} ${deliveryId}\``
    return `Correct the handler and promote it, then run it again with ${replays}.`
  },
})

const replay: CommandSpec = requestCommand({
  name: 'http replay',
  summary: 'Run a failed delivery again, with the handler that the mount has now',
  details: [
    'The hook of the same name in the Release that the mount serves handles the stored request,',
    'without another verification. Its attempts are counted on. Correct and promote first.',
  ],
  positionals: [MOUNT, DELIVERY],
  options: { ...REMOTE, 'operation-id': OPERATION_ID },
  examples: ['svc http replay payments sch_...'],
  input: ({ 'operation-id': given }, [mount, delivery], context) => ({
    mount: requireMountName(mount, 'MOUNT', replay),
    scheduledId: requireId('sch', delivery, 'DELIVERY', replay),
    operationId: operationIdOf(context, replay, given),
  }),
  announce: operationText,
  progress: ({ scheduledId }) => `replaying ${scheduledId}`,
  request: (remote, { operationId, ...params }) =>
    remote.call(replayDelivery, { params, operationId, subjects: { ...params } }),
  explains: ({ mount, scheduledId }) => ({
    PRODUCT_STATE_CONFLICT: {
      next: `See its state with \`svc http delivery ${mount} ${scheduledId}\`.`,
    },
  }),
  lines: ({ deliveryId, mount, releaseId }) => [
    `${deliveryId} runs again under ${releaseId}.`,
    `See how it ends with \`svc http delivery ${mount} ${deliveryId}\`.`,
  ],
})

export const deliveryCommands: readonly CommandSpec[] = [list, read, replay]

function factsOf(delivery: DeliveryRead): readonly string[] {
  const { method, path, bodyBytes, state, attempts, finishedAtMicros } = delivery
  const { lastErrorCode, lastErrorMessage } = delivery
  const ended = finishedAtMicros === null ? '' : ` at ${timeText(finishedAtMicros)}`
  const failure = lastErrorMessage === null ? '' : `: ${lastErrorMessage}`
  return [
    `${delivery.deliveryId} of ${delivery.mount}, hook ${delivery.route}`,
    `event     ${delivery.event}`,
    `received  ${timeText(delivery.receivedAtMicros)}`,
    `request   ${method} ${path}, ${bodyBytes} bytes`,
    `handler   ${delivery.function} of ${delivery.releaseId}`,
    `state     ${state}${ended}, attempts: ${attempts}`,
    ...(lastErrorCode === null ? [] : [`failure   ${lastErrorCode}${failure}`]),
  ]
}

function contentOf({ content }: DeliveryRead): readonly string[] {
  if (content === undefined) return ['Its headers and its body need the capability data:read.']
  if (content === null) return ['Its headers and its body are no longer stored.']
  const { headers, query } = content
  return [
    ...Object.entries(headers).map(([name, value]) => `header    ${name}: ${value}`),
    ...Object.entries(query).map(([name, value]) => `query     ${name}=${value}`),
    ...bodyOf(content),
  ]
}

/** Returns the body as text where it is text; --json has its bytes. */
function bodyOf({ body }: DeliveryContent): readonly string[] {
  const bytes = decodeBase64Url(body)
  if (bytes.length === 0) return []
  try {
    return ['', new TextDecoder('utf-8', { fatal: true }).decode(bytes)]
  } catch {
    return ['The body is no text. --json shows its bytes in base64url.']
  }
}
