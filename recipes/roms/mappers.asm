; Test programs of the mappers: accesses of hot spots by every kind of instruction, code
; and data of each bank, and the cartridge's RAM, all of which is noted in RAM and shown
; as stripes. scripts/make_roms.sh assembles one image for each mapper:
;   dasm mappers.asm -f3 -DMAPPER=3 -omapper-f8.bin
;
;   80  frames    81  sum of all notes    82  place of the next note
;   90  the last 16 notes
;
; The code lies at FC00 in every bank, so that it goes on whichever bank is taken.
        processor 6502
        include "tia.inc"

M_2K    = 0
M_4K    = 1
M_CV    = 2
M_F8    = 3
M_F6    = 4
M_F4    = 5
M_F8SC  = 6
M_F6SC  = 7
M_F4SC  = 8
M_FA    = 9
M_FE    = 10
M_UA    = 11
M_E0    = 12
M_E7    = 13
M_3F    = 14
M_3E    = 15
M_DPC   = 16

FRAME   = $80
SUM     = $81
PLACE   = $82
TURN    = $83
NOTES   = $90

; Banks of an image: their number, and the first hot spot where there are some in a row.
BANKS   SET 1
SPOT    SET 0
RAMSIZE SET 0
        IF MAPPER == M_F8 || MAPPER == M_F8SC || MAPPER == M_DPC
BANKS   SET 2
SPOT    SET $FFF8
        ENDIF
        IF MAPPER == M_F6 || MAPPER == M_F6SC
BANKS   SET 4
SPOT    SET $FFF6
        ENDIF
        IF MAPPER == M_F4 || MAPPER == M_F4SC
BANKS   SET 8
SPOT    SET $FFF4
        ENDIF
        IF MAPPER == M_FA
BANKS   SET 3
SPOT    SET $FFF8
RAMSIZE SET 256
        ENDIF
        IF MAPPER == M_F8SC || MAPPER == M_F6SC || MAPPER == M_F4SC
RAMSIZE SET 128
        ENDIF
        IF MAPPER == M_FE || MAPPER == M_UA
BANKS   SET 2
        ENDIF

; ---- what every bank holds ----

        MAC COMMON
.start  sei
        cld
        ldx #$FF
        txs
        lda #0
        tax
.clear  sta $00,x
        inx
        bne .clear

.frame  lda #2
        sta VSYNC
        sta WSYNC
        sta WSYNC
        sta WSYNC
        lda #0
        sta VSYNC
        lda #43
        sta TIM64T
        inc FRAME
        jsr .test
.blank  lda INTIM
        bne .blank
        sta WSYNC
        sta VBLANK
        ldx #96         ; stripes of the notes, two lines each
.stripe txa
        and #15
        tay
        lda NOTES,y
        sta WSYNC
        sta COLUBK
        sta WSYNC
        dex
        bne .stripe
        lda #2
        sta WSYNC
        sta VBLANK
        lda #35
        sta TIM64T
.over   lda INTIM
        bne .over
        jmp .frame

; A note: into the sum and behind the last one. X and Y stay.
.note   clc
        adc SUM
        rol
        sta SUM
        stx TURN
        ldx PLACE
        sta NOTES,x
        inx
        txa
        and #15
        sta PLACE
        ldx TURN
        rts

; What the bank that is there says: by data, by an index, by code.
.look   lda $F200
        jsr .note
        ldy FRAME
        lda $F200,y
        jsr .note
        jsr $F300
        jmp .note

.test
        IF SPOT != 0
        lda FRAME       ; a bank by turns, by a read with an index
        and #7
.less   cmp #BANKS
        bcc .found
        sbc #BANKS
        bcs .less
.found  tax
        lda SPOT,x
        jsr .look
        bit SPOT
        jsr .look
        lda #$55
        sta SPOT+BANKS-1
        jsr .look
        inc SPOT        ; a read and a write
        jsr .look
        ldy #1
        sta SPOT,y
        jsr .look
        cmp SPOT+BANKS-1
        jsr .look
        lda #<(SPOT-8)  ; by a pointer to a little before the hot spots
        sta $84
        lda #>(SPOT-8)
        sta $85
        ldy #8
        lda ($84),y
        jsr .look
        ENDIF
        IF RAMSIZE != 0
        ldx FRAME       ; a byte is written, and others are read
        txa
        eor SUM
        IF RAMSIZE == 128
        pha
        txa
        and #127
        tax
        pla
        ENDIF
        sta $F000,x
        lda $F000+RAMSIZE,x
        jsr .note
        lda $F000+RAMSIZE+3
        jsr .note
        lda FRAME
        sta $F000+RAMSIZE-1
        sta SPOT        ; RAM is one, whichever the bank
        lda $F000+RAMSIZE+RAMSIZE-1
        jsr .note
        ENDIF
        IF MAPPER == M_2K
        lda $F000       ; the first half is the second
        jsr .note
        lda $F800
        jsr .note
        ldx FRAME
        lda $F100,x
        jsr .note
        lda $F900,x
        jsr .note
        lda $1900,x     ; 13 address lines: 1900 is F900
        jsr .note
        lda $7900,x
        jsr .note
        ENDIF
        IF MAPPER == M_4K
        jsr .look
        ldx FRAME
        lda $1200,x
        jsr .note
        sta $F200       ; a write does nothing
        jsr .look
        inc $F200
        jsr .look
        ENDIF
        IF MAPPER == M_CV
        ldx FRAME
        txa
        eor SUM
        sta $F400,x
        sta $F3FF,x     ; what the mapper is known by; into nothing, or at F400 on
        lda $F000,x
        jsr .note
        lda SUM
        sta $F7FF
        lda $F3FF
        jsr .note
        lda $F201,x
        jsr .note
        ldy FRAME
        lda $F900,y
        jsr .note
        ENDIF
        IF MAPPER == M_UA
        lda $0220
        jsr .look
        lda $0240
        jsr .look
        sta $0220
        jsr .look
        sta $0240       ; what the mapper is known by
        jsr .look
        lda FRAME
        lsr
        bcc .even
        bit $0220
.even   jsr .look
        ENDIF
        IF MAPPER == M_FE
        jsr .look
        jsr $D000       ; with what is there, what the mapper is known by
        dec $C5
        jsr .note
        lda $D200
        jsr .note
        ldy FRAME
        lda $D200,y
        jsr .note
        lda $F200,y
        jsr .note
        jsr $D300
        jsr .note
        ENDIF
        IF MAPPER == M_E0
        lda FRAME
        and #7
        tax
        lda $FFE0,x
        lda $F080
        jsr .note
        lda $FFE8,x
        lda $F480
        jsr .note
        lda $FFF0,x
        lda $F880
        jsr .note
        sta $1FE0       ; what the mapper is known by
        ldy FRAME
        lda $F000,y
        jsr .note
        bit $FFEB
        lda $F400,y
        jsr .note
        jsr $F500
        jsr .note
        inc $FFF6
        lda $F800,y
        jsr .note
        jsr $F900
        jsr .note
        lda $FC00,y
        jsr .note
        ENDIF
        IF MAPPER == M_E7
        lda FRAME
        and #7
        tax
        lda $FFE0,x     ; the eighth is RAM
        cpx #7
        beq .ram
        lda $F080
        jsr .note
        ldy FRAME
        lda $F600,y
        jsr .note
        jsr $F500
        jsr .note
        jmp .small
.ram    ldy FRAME
        tya
        eor SUM
        sta $F000,y
        lda $F400,y
        jsr .note
        sta $F3FF
        lda $F7FF
        jsr .note
.small  lda FRAME       ; 256 bytes of RAM, one of four
        and #3
        tax
        sta $FFE8,x
        ldy FRAME
        tya
        eor SUM
        sta $F800,y
        lda $F900,y
        jsr .note
        lda $F9FF
        jsr .note
        lda $FA80
        jsr .note
        ENDIF
        IF MAPPER == M_3F || MAPPER == M_3E
        lda FRAME
        sta $3F
        lda $F080
        jsr .note
        ldy FRAME
        lda $F100,y
        jsr .note
        jsr $F200
        jsr .note
        lda #2
        sta $3F
        lda $F080
        jsr .note
        lda $F880       ; the upper half stays
        jsr .note
        lda #1
        sta $3F
        lda $00         ; what is read below 40
        jsr .note
        lda $3C
        jsr .note
        ENDIF
        IF MAPPER == M_3F
        lda #$07
        sta COLUPF      ; takes a bank, too
        lda $F080
        jsr .note
        ENDIF
        IF MAPPER == M_3E
        lda #1
        sta $3E         ; what the mapper is known by
        lda #0
        sta $3E
        lda #0
        lda FRAME
        and #31
        sta $3E
        ldy FRAME
        tya
        eor SUM
        sta $F400,y
        lda $F000,y
        jsr .note
        sta $F7FF
        lda $F3FF
        jsr .note
        lda $F880
        jsr .note
        lda $08         ; RAM is read there, too
        jsr .note
        lda #3
        sta $3F
        lda $F080
        jsr .note
        sta $F400       ; into nothing
        lda #0
        sta $3E
        lda $F000
        jsr .note
        ENDIF
        IF MAPPER == M_DPC
        ldx #7
.fetch  txa             ; top, bottom and counter of each
        asl
        asl
        asl
        adc FRAME
        sta $F040,x
        lsr
        sta $F048,x
        lda FRAME
        eor SUM
        sta $F050,x
        txa
        and #$17
        sta $F058,x
        dex
        bpl .fetch
        ldx #7
.read   lda $F008,x
        jsr .note
        lda $F010,x
        jsr .note
        lda $F038,x
        jsr .note
        dex
        bpl .read
        lda $F000       ; chance
        jsr .note
        lda $F003
        jsr .note
        lda #$1F        ; fetcher 5 makes music
        sta $F05D
        lda #40
        sta $F045
        lda #20
        sta $F04D
        lda $F004
        jsr .note
        lda $F00D
        jsr .note
        lda $F005
        jsr .note
        lda #$10
        sta $F05E
        lda $F006
        jsr .note
        lda FRAME
        and #63
        bne .keep
        sta $F070       ; chance from its beginning
.keep   lda $F020,x
        jsr .note
        ENDIF
        rts
.end
        IF .end > $FFE0
        ERR
        ENDIF
        ds $FFFC - ., $EA
        .word .start
        .word .start
        ENDM

; ---- what differs from bank to bank ----

; 256 bytes by which a bank is known.
        MAC TABLE
.value  SET {1} * 29 + 5
        REPEAT 256
        .byte <.value
.value  SET .value + 7 + {1}
        REPEND
        ENDM

; A routine that answers with the bank.
        MAC ANSWER
        lda #{1} * 16 + 3
        rts
        ENDM

; A bank of 4 KiB.
        MAC BANK
        org {1} * $1000
        rorg {2}
        ds RAMSIZE != 128, $EE  ; all alike where RAM of 128 bytes is
        ds $200 - [RAMSIZE != 128], $FF
        TABLE {1}
        ANSWER {1}
        ds {2} + $C00 - ., $EA
        COMMON
        ENDM

        IF MAPPER == M_CV
        org 0           ; what the RAM begins as, and as much of nothing
NUMBER  SET 20
        REPEAT 4
        TABLE NUMBER
NUMBER  SET NUMBER + 1
        REPEND
        ds $400, $FF
        org $800
        ENDIF
        IF MAPPER == M_2K
        org 0
        ENDIF
        IF MAPPER == M_2K || MAPPER == M_CV
        rorg $F800
        TABLE 3
        TABLE 8
        ANSWER 3
        ds $FC00 - ., $EA
        COMMON
        ENDIF

        IF MAPPER == M_4K || SPOT != 0 || MAPPER == M_UA
NUMBER  SET 0
        REPEAT BANKS
        BANK NUMBER, $F000
NUMBER  SET NUMBER + 1
        REPEND
        ENDIF

        IF MAPPER == M_DPC
        org $2000       ; 2 KiB of graphics
NUMBER  SET 11
        REPEAT 8
        TABLE NUMBER
NUMBER  SET NUMBER + 3
        REPEND
        ENDIF

        IF MAPPER == M_FE
        BANK 0, $F000
        org $1000       ; the second is seen at D000
        rorg $D000
        lda $D201
        pha
        lda $F201
        clc
        adc FRAME
        sta $C4
        pla
        rts
        ds $D200 - ., $EA
        TABLE 1
        ANSWER 1
        ds $DFFC - ., $EA
        .word $FC00
        .word $FC00
        ENDIF

        IF MAPPER == M_E0
NUMBER  SET 0
        REPEAT 7
        org NUMBER * $400
        TABLE NUMBER
        ANSWER NUMBER
NUMBER  SET NUMBER + 1
        REPEND
        org $1C00
        rorg $FC00
        COMMON
        ENDIF

        IF MAPPER == M_3F || MAPPER == M_3E
NUMBER  SET 0
        REPEAT 4
        org NUMBER * $800
        TABLE NUMBER
        TABLE NUMBER + 50
        ANSWER NUMBER
NUMBER  SET NUMBER + 1
        REPEND
        org $1C00
        rorg $FC00
        COMMON
        ENDIF

        IF MAPPER == M_E7
NUMBER  SET 0
        REPEAT 7
        org NUMBER * $800
        TABLE NUMBER
        org NUMBER * $800 + $500
        ANSWER NUMBER
        org NUMBER * $800 + $600
        TABLE NUMBER + 50
        TABLE NUMBER + 90
NUMBER  SET NUMBER + 1
        REPEND
        org $3800       ; nothing where the RAM lies
        ds $200, $FF
        TABLE 77
        org $3C00
        rorg $FC00
        COMMON
        ENDIF
