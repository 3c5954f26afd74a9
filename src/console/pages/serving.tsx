/** The serving policy: which Releases answer calls of environment:default, with which shares. */
import { useState } from 'preact/hooks'
import type { ServingPolicy } from '../../wire/serving-policy.ts'
import type { Status } from '../../wire/status.ts'
import { timeText } from '../formats.ts'
import { useLoaded } from '../loading.ts'
import { Empty, Result, Section } from '../parts/page.tsx'
import { Identifier } from '../parts/shown.tsx'
import { Table } from '../parts/table.tsx'
import { call, nowMicros } from '../requests.ts'
import { ask, environmentId, may, svcCommand } from '../state.ts'
import { releaseLabel } from './release-label.ts'

/** All weights of a policy together. */
const WEIGHTS_TOTAL = 10_000
const WEIGHTS_OF_PERCENT = 100
/** The policy is in force some time after it was set. */
const POLICY_MS = 3_000

export function ServingSection({ status, reload }: { status: Status; reload: () => void }) {
  const id = environmentId.value
  // Not by the revision of the status: a change of another operator leaves the form as it is.
  const policy = useLoaded(id, (background) => call('readServingPolicy', id, {}, { background }), {
    everyMs: POLICY_MS,
  })
  const reloadAll = (): void => {
    policy.reload()
    reload()
  }
  return (
    <Section title="Shares of the callers: environment:default">
      <p class="quiet">
        Each call names a target. Callers of environment:default are divided between Releases by
        these shares. Callers of a Channel all reach the Release of the Channel.
      </p>
      <Result of={policy}>
        {(known) => (
          <>
            <Shares policy={known} />
            {may('channels:promote') && (
              <Canary
                key={known.desired.revision}
                status={status}
                policy={known}
                reload={reloadAll}
              />
            )}
          </>
        )}
      </Result>
    </Section>
  )
}

function Shares({ policy: { desired, observed } }: { policy: ServingPolicy }) {
  if (desired.releases.length === 0) {
    return (
      <Empty>
        No Release answers calls of environment:default yet. Give it a first Release; then another
        one can get a share of its callers.
      </Empty>
    )
  }
  return (
    <>
      <Table
        label="Releases of the policy"
        rows={desired.releases}
        keyOf={({ releaseId }) => releaseId}
        columns={[
          { head: 'Release', cell: ({ releaseId }) => <Identifier id={releaseId} /> },
          {
            head: 'Share of the callers',
            isNumber: true,
            cell: ({ weight }) => `${weight / WEIGHTS_OF_PERCENT} %`,
          },
        ]}
      />
      <p class="quiet">
        Revision {desired.revision}, {desired.mode};{' '}
        {observed.revision === desired.revision
          ? `in force since ${timeText(observed.convergedAtMicros)}`
          : `not in force yet: revision ${observed.revision} serves`}
      </p>
    </>
  )
}

/** Gives a part of the callers to one more Release, or all of them. */
function Canary({
  status,
  policy: { desired },
  reload,
}: {
  status: Status
  policy: ServingPolicy
  reload: () => void
}) {
  // Sorted by their IDs, so the first is the oldest, regardless of its share.
  const stable = desired.releases[0]?.releaseId ?? null
  const candidates = status.releases.filter(
    ({ state, releaseId }) => state === 'validated' && releaseId !== stable,
  )
  const current = desired.releases.find(({ releaseId }) => releaseId !== stable)
  const [releaseId, setReleaseId] = useState<string>(
    current?.releaseId ?? firstOf(status, stable, candidates) ?? '',
  )
  const [percent, setPercent] = useState((current?.weight ?? 0) / WEIGHTS_OF_PERCENT)
  if (candidates.length === 0) return <Empty>There is no other validated Release to serve.</Empty>
  const isAlone = stable === null || percent === 100
  const releases = sharesOf(isAlone ? null : stable, releaseId, percent)
  const submit = (event: SubmitEvent): void => {
    event.preventDefault()
    const shares = releases.map((each) => `${each.releaseId}=${each.weight}`).join(',')
    ask({
      title: 'Replace the serving policy?',
      effects: [
        ...releases.map(
          (each) =>
            `${each.releaseId} answers ${each.weight / WEIGHTS_OF_PERCENT} % of the callers.`,
        ),
        ...desired.releases
          .filter((before) => releases.every((each) => each.releaseId !== before.releaseId))
          .map((before) => `${before.releaseId} answers no caller of environment:default.`),
      ],
      command: svcCommand(`serve-policy set --releases ${shares} --expected ${desired.revision}`),
      label: 'Replace the policy',
      act: () =>
        call('setServingPolicy', environmentId.value, {
          body: {
            expectedRevision: desired.revision,
            mode: releases.length === 1 ? 'atomic' : 'weighted',
            releases,
            changedAtMicros: nowMicros(),
          } as never,
        }),
      done: reload,
    })
  }
  return (
    <form onSubmit={submit}>
      <label class="field">
        <span class="label">{stable === null ? 'First Release' : 'Another Release'}</span>
        <select
          name="canary"
          value={releaseId}
          onChange={(event) => setReleaseId(event.currentTarget.value)}
        >
          {candidates.map((each) => (
            <option key={each.releaseId} value={each.releaseId}>
              {releaseLabel(each)}
            </option>
          ))}
        </select>
      </label>
      {stable !== null && (
        <label class="field">
          <span class="label">Its share of the callers: {percent} %</span>
          <input
            type="range"
            min="0"
            max="100"
            value={percent}
            onInput={(event) => setPercent(Number(event.currentTarget.value))}
          />
        </label>
      )}
      <button type="submit">Set the shares …</button>
    </form>
  )
}

/** Offers first what a Channel serves, where nothing has a share, and else the newest Release. */
function firstOf(
  { channels }: Status,
  stable: string | null,
  candidates: Status['releases'],
): string | undefined {
  const served = candidates.find(({ releaseId }) =>
    channels.some((each) => each.releaseId === releaseId),
  )
  return (stable === null ? (served ?? candidates[0]) : candidates[0])?.releaseId
}

/** The Releases of a policy, sorted as it must be; a share of nothing is left out. */
function sharesOf(stable: string | null, other: string, percent: number) {
  if (stable === null) return [{ releaseId: other, weight: WEIGHTS_TOTAL }]
  const weight = percent * WEIGHTS_OF_PERCENT
  return [
    { releaseId: stable, weight: WEIGHTS_TOTAL - weight },
    { releaseId: other, weight },
  ]
    .filter((each) => each.weight > 0)
    .toSorted((a, b) => (a.releaseId < b.releaseId ? -1 : 1))
}
