/* The sections of a run's report in their order on the page, one line each (no guard:
 * included where STI_REPORT is defined): sti_report_add_NAME is the section's writer.
 */
STI_REPORT(figures)
STI_REPORT(curves)
STI_REPORT(field)
STI_REPORT(memory)
STI_REPORT(trained)
STI_REPORT(forms)
STI_REPORT(bounds)
STI_REPORT(classes)
STI_REPORT(sheet)
STI_REPORT(machine)
