/** One delivery: what came, what it became, why it failed, and its replay. */
import { decodeBase64Url } from '../../../value/base64url.ts'
import type { DeliveryContent, DeliveryRead } from '../../../wire/http/deliveries.ts'
import { bytesText, timeText } from '../../formats.ts'
import { useLoaded } from '../../loading.ts'
import { Badge, Reload, Result, Section } from '../../parts/page.tsx'
import { Block, Identifier, Shown } from '../../parts/shown.tsx'
import { call } from '../../requests.ts'
import { ask, environmentId, hrefOf, may, svcCommand } from '../../state.ts'

/** Time between two reads of a delivery, which may be running. */
const DELIVERY_MS = 3_000

export function Delivery({ mount, scheduledId }: { mount: string; scheduledId: string }) {
  const id = environmentId.value
  const params = { mount, scheduledId }
  const read = useLoaded(
    `${id} ${mount} ${scheduledId}`,
    (background) => call('readDelivery', id, { params }, { background }),
    { everyMs: DELIVERY_MS },
  )
  return (
    <>
      <Section title="Delivery" actions={<Reload of={[read]} />}>
        <p>
          <a href={hrefOf('http', { mount })}>All deliveries of {mount}</a>
        </p>
        <Result of={read}>
          {(delivery) => (
            <>
              <Facts delivery={delivery} />
              {delivery.state === 'failed' && (
                <Failed delivery={delivery} mount={mount} reload={read.reload} />
              )}
            </>
          )}
        </Result>
      </Section>
      {read.value !== null && <Content content={read.value.content} />}
    </>
  )
}

function Facts({ delivery }: { delivery: DeliveryRead }) {
  const { deliveryId, state, event, route, method, path, bodyBytes, attempts } = delivery
  const { function: handler, releaseId, receivedAtMicros, finishedAtMicros } = delivery
  return (
    <dl>
      <dt>State</dt>
      <dd>
        <Badge text={state} />{' '}
        {finishedAtMicros !== null && <span>since {timeText(finishedAtMicros)}</span>}
      </dd>
      <dt>Event</dt>
      <dd>
        <Shown text={event} max={256} />
      </dd>
      <dt>Request</dt>
      <dd>
        <Shown text={`${method} ${path}`} max={2_000} />, {bytesText(bodyBytes)}
      </dd>
      <dt>Received</dt>
      <dd>{timeText(receivedAtMicros)}</dd>
      <dt>Hook</dt>
      <dd>
        <Shown text={route} />
      </dd>
      <dt>Handler</dt>
      <dd>
        <a href={hrefOf('functions', { target: `release:${releaseId}`, function: handler })}>
          <Shown text={handler} max={512} />
        </a>{' '}
        of <Identifier id={releaseId} />
      </dd>
      <dt>Attempts</dt>
      <dd>{attempts}</dd>
      <dt>ID</dt>
      <dd>
        <Identifier id={deliveryId} />
      </dd>
    </dl>
  )
}

function Failed({
  delivery,
  mount,
  reload,
}: {
  delivery: DeliveryRead
  mount: string
  reload: () => void
}) {
  const { deliveryId, event, route, lastErrorCode, lastErrorMessage } = delivery
  const replay = (): void =>
    ask({
      title: `Replay the delivery of ${event}?`,
      effects: [
        `The hook ${route} of the Release that ${mount} serves handles the stored request again, ` +
          'without another verification.',
        'Calls that an Action made to other services before it failed are made again. Correct ' +
          'the handler and promote its Release first.',
      ],
      command: svcCommand(`http replay ${mount} ${deliveryId}`),
      label: 'Replay the delivery',
      act: () =>
        call('replayDelivery', environmentId.value, {
          params: { mount, scheduledId: deliveryId },
        }),
      done: reload,
    })
  return (
    <>
      <div class="failure">
        <p>
          <strong>{lastErrorCode ?? 'failed'}</strong>{' '}
          {lastErrorMessage !== null && <Shown text={lastErrorMessage} max={1_024} />}
        </p>
        <p>
          Correct the handler, promote its Release, then replay the delivery.{' '}
          <a href={hrefOf('logs', { function: delivery.function })}>Records of the handler</a>
        </p>
      </div>
      {may('data:write') && (
        <div class="buttons">
          <button type="button" class="main" onClick={replay}>
            Replay …
          </button>
        </div>
      )}
    </>
  )
}

function Content({ content }: { content: DeliveryContent | null | undefined }) {
  if (content === undefined) {
    return (
      <Section title="Headers and body">
        <p class="quiet">They need the capability data:read.</p>
      </Section>
    )
  }
  if (content === null) {
    return (
      <Section title="Headers and body">
        <p class="quiet">They are not stored: long ones are dropped after a success.</p>
      </Section>
    )
  }
  const facts = [
    ...Object.entries(content.headers),
    ...Object.entries(content.query).map(([name, value]) => [`?${name}`, value] as const),
  ]
  return (
    <Section title="Headers and body">
      <dl>
        {facts.map(([name, value]) => (
          <Fact key={name} name={name} value={value} />
        ))}
      </dl>
      <Body body={content.body} />
    </Section>
  )
}

function Fact({ name, value }: { name: string; value: string }) {
  return (
    <>
      <dt>
        <Shown text={name} max={80} />
      </dt>
      <dd>
        <Shown text={value} max={2_000} />
      </dd>
    </>
  )
}

function Body({ body }: { body: string }) {
  const text = textOf(body)
  if (text === '') return <p class="quiet">The body is empty.</p>
  if (text !== null) return <Block text={text} label="Body" />
  return (
    <p class="quiet">
      The body is not text. <code>svc http delivery --json</code> shows its bytes.
    </p>
  )
}

/** Returns the body as text; null for bytes that are not UTF-8. */
function textOf(body: string): string | null {
  try {
    return new TextDecoder('utf-8', { fatal: true }).decode(decodeBase64Url(body))
  } catch {
    return null
  }
}
