/** A plot of series over time, in the colours of the page. */
import { useEffect, useRef } from 'preact/hooks'
import UPlot from 'uplot'

export interface Series {
  readonly label: string
  /** One value for each time; null if there is none. */
  readonly values: readonly (number | null)[]
}

const HEIGHT = 170
const COLOURS = ['--plot-1', '--plot-2', '--plot-3']

/** `summary` says the same for people who do not see the plot. */
export function Plot({
  title,
  times,
  series,
  format,
  summary,
}: {
  title: string
  /** Unix seconds, ascending. */
  times: readonly number[]
  series: readonly Series[]
  format: (value: number) => string
  summary: string
}) {
  const frame = useRef<HTMLDivElement>(null)
  const plot = useRef<UPlot | null>(null)
  const labels = series.map(({ label }) => label).join('\n')
  // biome-ignore lint/correctness/useExhaustiveDependencies: the labels say which series there are.
  useEffect(() => {
    const element = frame.current!
    const make = (): void => {
      plot.current?.destroy()
      plot.current = new UPlot(optionsOf(element, series, format), [[], ...series.map(() => [])])
      element.append(plot.current.root)
      plot.current.setData(dataOf(times, series))
    }
    make()
    const scheme = matchMedia('(prefers-color-scheme: dark)')
    scheme.addEventListener('change', make)
    const observer = new ResizeObserver(() => {
      plot.current?.setSize({ width: element.clientWidth, height: HEIGHT })
    })
    observer.observe(element)
    return () => {
      scheme.removeEventListener('change', make)
      observer.disconnect()
      plot.current?.destroy()
      plot.current = null
    }
  }, [labels])
  useEffect(() => {
    plot.current?.setData(dataOf(times, series))
  }, [times, series])
  return (
    <figure class="plot">
      <figcaption>
        <strong>{title}</strong>
        <span class="summary">{summary}</span>
        <span class="legend">
          {series.map(({ label }, i) => (
            <span key={label} class={`key key-${i + 1}`}>
              {label}
            </span>
          ))}
        </span>
      </figcaption>
      <div ref={frame} aria-hidden="true" />
    </figure>
  )
}

function dataOf(times: readonly number[], series: readonly Series[]): UPlot.AlignedData {
  return [[...times], ...series.map(({ values }) => [...values])]
}

function optionsOf(
  element: HTMLElement,
  series: readonly Series[],
  format: (value: number) => string,
): UPlot.Options {
  const style = getComputedStyle(element)
  const colour = (name: string): string => style.getPropertyValue(name).trim()
  const axis = { stroke: colour('--quiet'), grid: { stroke: colour('--line'), width: 1 } }
  return {
    width: Math.max(element.clientWidth, 50),
    height: HEIGHT,
    legend: { show: false },
    cursor: { show: false },
    axes: [
      { ...axis, ticks: { show: false } },
      {
        ...axis,
        ticks: { show: false },
        size: 64,
        values: (_, splits) => splits.map(format),
      },
    ],
    scales: { y: { range: (_, __, max) => [0, Math.max(max ?? 0, 1) * 1.1] } },
    series: [
      {},
      ...series.map(({ label }, i) => ({
        label,
        stroke: colour(COLOURS[i]!),
        width: 2,
        points: { show: false },
      })),
    ],
  }
}
